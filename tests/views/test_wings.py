from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse

from palace.curation.trash import move_to_trash
from palace.models import Drawer, Palace, Wing
from palace.storage.intake import unsorted_wing
from tests.factories import DrawerFactory, RoomFactory, WingFactory


@pytest.fixture
def other(palace):
    return WingFactory(palace=palace, name="Derek & <b>Co</b>", slug="derek", number=9043)


def edit(wing):
    return reverse("wing_edit", args=[wing.uuid])


def merge(wing):
    return reverse("wing_merge", args=[wing.uuid])


def test_a_wings_page_leads_to_its_form(alices, wing, drawer):
    assert f'href="{edit(wing)}"' in alices.get(wing.get_absolute_url()).text
    form = alices.get(edit(wing)).text
    assert 'value="Efoil rebuild"' in form
    assert '<option value="topic" selected>' in form


def test_name_and_kind_are_changed(alices, wing, drawer):
    response = alices.post(edit(wing), {"name": " The board ", "kind": "project"}, follow=True)
    assert response.redirect_chain == [(wing.get_absolute_url(), 302)]
    assert "The board" in response.text
    assert "Wing, project" in response.text
    assert "its old name still comes here" in response.text
    again = alices.post(edit(wing), {"name": "The board", "kind": "topic"}, follow=True)
    assert "its old name" not in again.text


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"name": " ", "kind": "topic"}, "A wing needs a name."),
        ({"name": "x" * 5000, "kind": "topic"}, "This name is too long."),
        ({"name": "Unsorted", "kind": "topic"}, "is the name of the unsorted wing."),
        ({"name": "Board", "kind": "nothing"}, "Choose one of the kinds"),
        ({}, "A wing needs a name."),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(alices, wing, sent, sentence):
    response = alices.post(edit(wing), sent)
    assert response.status_code == 400
    assert sentence in response.text
    assert 'aria-invalid="true"' in response.text
    wing.refresh_from_db()
    assert wing.name == "Efoil rebuild"


def test_a_name_that_is_taken_offers_to_merge(alices, wing, other):
    response = alices.post(edit(wing), {"name": "DEREK", "kind": "topic"})
    assert response.status_code == 400
    assert "Another wing has the name “DEREK”" in response.text
    assert f'href="{merge(wing)}?into={other.uuid}"' in response.text
    assert "Merge with “Derek &amp; &lt;b&gt;Co&lt;/b&gt;”" in response.text
    assert 'value="DEREK"' in response.text


def test_merging_says_what_moves_and_does_it_when_confirmed(alices, wing, drawer, other):
    DrawerFactory.create_batch(2, room=RoomFactory(wing=wing))
    move_to_trash(drawer)
    asked = alices.get(merge(wing), {"into": other.uuid})
    assert "1 room with 2 drawers, and 1 drawer in the trash, move to" in asked.text
    assert Wing.objects.count() == 2
    done = alices.post(merge(wing), {"into": other.uuid}, follow=True)
    assert done.redirect_chain == [(other.get_absolute_url(), 302)]
    assert "“Efoil rebuild” is part of this wing now: 1 room, 2 drawers moved." in done.text
    assert Wing.objects.get() == other
    assert alices.post(merge(wing), {"into": other.uuid}).status_code == 404


def test_nothing_chosen_is_said_beside_the_field(alices, wing, other):
    response = alices.get(merge(wing), {"into": ""})
    assert response.status_code == 400
    assert "Choose the wing it becomes part of." in response.text


def test_a_wing_with_itself_is_refused(alices, wing, other):
    response = alices.post(merge(wing), {"into": wing.uuid})
    assert response.status_code == 400
    assert "cannot be merged with itself" in response.text


@pytest.mark.parametrize("into", ["nonsense", "0" * 32])
def test_a_wing_that_is_none_is_named(alices, wing, into):
    response = alices.get(merge(wing), {"into": into})
    assert response.status_code == 400
    assert "That wing is no longer here" in response.text


def test_a_strangers_wing_is_no_goal(alices, wing, drawer, bob):
    strangers = WingFactory(palace__owner=bob)
    refused = alices.post(merge(wing), {"into": strangers.uuid})
    assert "That wing is no longer here" in refused.text
    assert strangers.name not in refused.text
    assert strangers.name not in alices.get(edit(wing)).text
    drawer.room.refresh_from_db()
    assert drawer.room.wing == wing


def test_the_unsorted_wing_is_left_alone(alices, palace, wing):
    unsorted = unsorted_wing(palace)
    DrawerFactory(room=RoomFactory(wing=unsorted))
    assert edit(unsorted) not in alices.get(unsorted.get_absolute_url()).text
    for sent in ({}, {"name": "Sorted", "kind": "topic"}):
        response = (alices.post if sent else alices.get)(edit(unsorted), sent, follow=True)
        assert "The unsorted wing keeps its name" in response.text
    for pair in ((unsorted, wing), (wing, unsorted)):
        response = alices.post(merge(pair[0]), {"into": pair[1].uuid})
        assert response.status_code == 400
        assert "The unsorted wing stays as it is" in response.text
    assert str(unsorted.uuid) not in alices.get(edit(wing)).text


def test_a_merge_without_a_choice_shows_the_form_and_no_fault(alices, wing):
    response = alices.get(merge(wing), follow=True)
    assert response.redirect_chain == [(reverse("wing_edit", args=[wing.uuid]), 302)]
    assert "Choose the wing" not in response.text


def undo_of(response):
    """Address and fields of the form that undoes what was done just now."""
    form = re.search(
        r'<form method="post" action="([^"]+)">(?:(?!</form>).)*Undo', response.text, re.S
    )
    return form[1], dict(re.findall(r'name="([^"]+)" value="([^"]*)"', form[0]))


def test_a_merge_is_undone_at_once_or_from_the_activities(alices, wing, drawer, other, bobs):
    done = alices.post(merge(wing), {"into": other.uuid}, follow=True)
    where, fields = undo_of(done)
    assert f'action="{where}"' in alices.get(reverse("activities")).text
    assert bobs.post(where).status_code == 404
    back = alices.post(where, fields, follow=True)
    assert "Undone." in back.text
    assert back.redirect_chain[-1][0] == wing.get_absolute_url()
    drawer.room.refresh_from_db()
    assert drawer.room.wing == wing
    assert "There was nothing to undo." in alices.post(where, follow=True).text
    assert f'action="{where}"' not in alices.get(reverse("activities")).text


def change(place, kind):
    return reverse("place_edit", args=[kind, place.uuid])


@pytest.mark.parametrize("kind", ["room", "closet"])
def test_a_room_and_a_closet_are_renamed_and_back(alices, drawer, kind):
    place = getattr(drawer, kind)
    before, slug = place.title, getattr(place, "slug", "")
    assert f'href="{change(place, kind)}"' in alices.get(place.get_absolute_url()).text
    done = alices.post(change(place, kind), {"name": " The <new>\n name "}, follow=True)
    place.refresh_from_db()
    assert (place.title, getattr(place, "slug", "")) == ("The <new> name", slug)
    assert "is called “The &lt;new&gt; name” now" in done.text
    where, fields = undo_of(done)
    alices.post(where, fields)
    place.refresh_from_db()
    assert place.title == before


@pytest.mark.parametrize("name", [" ", "x" * 201])
def test_a_title_that_is_none_is_refused_beside_the_field(alices, drawer, name):
    response = alices.post(change(drawer.room, "room"), {"name": name})
    assert response.status_code == 400
    assert 'aria-invalid="true"' in response.text


def test_a_room_is_moved_and_back(alices, drawer, other):
    pointer, wing = str(drawer.pointer), drawer.room.wing
    done = alices.post(change(drawer.room, "room"), {"wing": other.uuid}, follow=True)
    drawer.room.refresh_from_db()
    assert drawer.room.wing == other
    assert not Wing.objects.filter(pk=wing.pk).exists()
    where, fields = undo_of(done)
    assert f'action="{where}"' in alices.get(reverse("activities")).text
    back = alices.post(where, fields, follow=True)
    assert "Undone: 1 message moved back." in back.text
    assert back.redirect_chain[-1][0] == wing.get_absolute_url()
    assert str(Drawer.objects.with_place().get().pointer) == pointer
    assert "There was nothing to undo." in alices.post(where, fields, follow=True).text
    assert f'action="{where}"' not in alices.get(reverse("activities")).text


def test_a_closet_is_moved_with_its_drawers_alone(alices, drawer, other):
    stays = DrawerFactory(room=drawer.room)
    done = alices.post(change(drawer.closet, "closet"), {"wing": other.uuid}, follow=True)
    assert f"Moved to “{html.escape(other.name)}”." in done.text
    moved = Drawer.objects.with_place().get(pk=drawer.pk)
    assert (moved.room.wing, moved.closet) == (other, drawer.closet)
    stays.refresh_from_db()
    assert stays.room == drawer.room


def test_nothing_is_moved_to_the_unsorted_wing(alices, drawer, palace):
    unsorted = WingFactory(palace=palace, number=0)
    response = alices.post(change(drawer.room, "room"), {"wing": unsorted.uuid})
    assert response.status_code == 400
    assert "Nothing can be moved to the unsorted wing" in response.text


@pytest.mark.parametrize("kind", ["room", "closet"])
def test_a_strangers_place_is_neither_renamed_nor_moved(bobs, alices, drawer, bob, kind):
    place = getattr(drawer, kind)
    assert bobs.get(change(place, kind)).status_code == 404
    assert bobs.post(change(place, kind), {"name": "Mine"}).status_code == 404
    theirs = WingFactory(palace=Palace.objects.own(bob))
    refused = alices.post(change(place, kind), {"wing": theirs.uuid})
    assert "That wing is no longer here" in refused.text
    assert theirs.name not in refused.text
    assert (
        alices.get(reverse("place_edit", args=["wing", drawer.room.wing.uuid])).status_code == 404
    )
