from __future__ import annotations

import pytest
from django.urls import reverse

from palace.curation.trash import move_to_trash
from palace.models import Wing
from palace.storage.transcript_filing import unsorted_wing
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


def test_merging_says_what_moves_and_does_it_when_told(alices, wing, drawer, other):
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
def test_a_wing_that_is_none_is_not_found(alices, wing, into):
    assert alices.get(merge(wing), {"into": into}).status_code == 404


def test_a_strangers_wing_is_no_goal(alices, wing, drawer, bob):
    strangers = WingFactory(palace__owner=bob)
    assert alices.post(merge(wing), {"into": strangers.uuid}).status_code == 404
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
