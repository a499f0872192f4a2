"""Merging two entities, splitting one, and undoing either, by the forms on a page."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from palace.models import Entity, Fact, Mention
from palace.queries import timeline
from tests.factories import DrawerFactory, EntityFactory, FactFactory, MentionFactory


@pytest.fixture
def ann(palace):
    return EntityFactory(palace=palace, name="Ann Berg", slug="ann-berg", aliases=["Annie"])


@pytest.fixture
def annie(palace):
    return EntityFactory(palace=palace, name="Annie & Co", slug="annie")


@pytest.fixture
def tea(annie):
    return FactFactory(subject=annie, text="Annie likes tea")


def page(entity, action="entity_detail"):
    return reverse(action, args=[entity.uuid])


def offered(response):
    return re.findall(r'name="other" value="([^"]+)"', response.text)


def undo_in(response):
    return re.search(r'action="([^"]+/undo/[^"]+)"', response.text)[1]


def test_the_page_leads_to_the_forms(alices, ann):
    assert f'href="{page(ann, "entity_edit")}"' in alices.get(page(ann)).text


@pytest.mark.parametrize(("rare", "walked"), [(0, 2), (4, 6), (4, 2000), (5, 2), (1000, 2000)])
def test_the_latest_mentions_are_found_near_and_far(ann, annie, rare, walked, monkeypatch):
    """There are five mentions, which are walked to unless they are rare."""
    monkeypatch.setattr(timeline, "RARE", rare)
    monkeypatch.setattr(timeline, "WALKED", walked)
    days = [datetime(2025, 1, day, tzinfo=UTC) for day in (3, 9, 1, 7, 5)]
    room = MentionFactory(entity=annie).drawer.room
    drawers = [DrawerFactory(room=room, text="Ann came.", said_at=day) for day in days]
    for drawer in drawers:
        MentionFactory(entity=ann, drawer=drawer)
    drawers[1].trash()
    MentionFactory(entity=annie, drawer=DrawerFactory(room=room, said_at=days[1]))
    expected = [drawers[n].pk for n in (3, 4, 0, 2)]
    assert timeline.latest_named(ann, at_most=9) == expected
    with CaptureQueriesContext(connection) as asked:
        assert timeline.latest_named(ann, at_most=2) == expected[:2]
    assert any("walked" in query["sql"] for query in asked) == (rare < len(days))


def test_names_alike_are_offered_and_others_found(alices, palace, ann, annie, bob):
    tom = EntityFactory(palace=palace, name="Tom")
    EntityFactory(palace__owner=bob, name="Annie of Bob")
    assert offered(alices.get(page(ann, "entity_edit"))) == [str(annie.uuid)]
    assert offered(alices.get(page(ann, "entity_edit"), {"q": "tom"})) == [str(tom.uuid)]
    none = alices.get(page(ann, "entity_edit"), {"q": "nobody\0"})
    assert offered(none) == []
    assert "No name matches." in none.text


def test_two_are_merged_and_taken_apart_again(alices, ann, annie, tea):
    done = alices.post(page(ann, "entity_merge"), {"other": annie.uuid}, follow=True)
    assert done.redirect_chain == [(page(ann), 302)]
    assert "“Annie &amp; Co” is part of “Ann Berg” now." in done.text
    assert "Annie likes tea" in done.text
    assert alices.get(page(annie)).status_code == 404
    undone = alices.post(undo_in(done), follow=True)
    assert "Undone. It is as it was before." in undone.text
    assert "Annie likes tea" in alices.get(page(annie)).text
    assert "There was nothing to undo" in alices.post(undo_in(done), follow=True).text


def test_what_was_searched_for_is_still_there_when_none_was_chosen(alices, ann, annie):
    searched = alices.get(page(ann, "entity_edit"), {"q": annie.name}).text
    [address] = re.findall(r'action="([^"]+/merge/[^"]*)"', searched)
    refused = alices.post(address)
    assert "Choose the one to merge." in refused.text
    assert f'value="{annie.uuid}"' in refused.text


@pytest.mark.parametrize(
    ("other", "status", "sentence"),
    [
        ("", 400, "Choose the one to merge."),
        ("itself", 400, "cannot be merged with itself"),
        ("nonsense", 400, "no longer here"),
        ("7e1f0a52-3a5c-4c6b-9f0e-5b8f2f1c9d10", 400, "no longer here"),
    ],
)
def test_what_cannot_be_merged_is_said(alices, ann, annie, other, status, sentence):
    chosen = ann.uuid if other == "itself" else other
    response = alices.post(page(ann, "entity_merge"), {"other": chosen})
    assert response.status_code == status
    assert sentence in response.text
    assert Entity.objects.count() == 2


def test_one_is_split_and_put_together_again(alices, ann, drawer):
    stays = FactFactory(subject=ann, text="Ann Berg likes tea")
    goes = FactFactory(subject=ann, text="Ann Berg teaches")
    named = MentionFactory(entity=ann, drawer=DrawerFactory(room=drawer.room))
    form = alices.get(page(ann, "entity_edit")).text
    assert form.count('type="checkbox"') == 4
    sent = {
        "name": "Ann Berg",
        "kind": "person",
        "fact": [goes.uuid],
        "drawer": [named.drawer.uuid],
        "alias": ["Annie"],
    }
    done = alices.post(page(ann, "entity_split"), sent, follow=True)
    new = Entity.objects.exclude(pk=ann.pk).get()
    assert done.redirect_chain == [(page(new), 302)]
    assert set(Fact.objects.filter(subject=new)) == {goes}
    assert set(Fact.objects.filter(subject=ann)) == {stays}
    assert Mention.objects.get().entity == new
    assert new.aliases == ["Annie"]
    alices.post(undo_in(done))
    assert Fact.objects.filter(subject=ann).count() == 2
    assert not Entity.objects.filter(pk=new.pk).exists()


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"name": "Ann"}, "Nothing would go to the new one."),
        ({"name": " ", "alias": ["Annie"]}, "Write a name for the new one."),
        ({"name": "Ann", "kind": "ghost", "alias": ["Annie"]}, "Choose one of the kinds"),
        ({"name": "Ann", "alias": ["Nan"]}, "is no other name of"),
        ({"name": "Ann", "fact": [str(uuid.uuid4())]}, "Not all of these facts"),
    ],
)
def test_what_cannot_be_split_is_said_in_the_form(alices, ann, sent, sentence):
    response = alices.post(page(ann, "entity_split"), sent)
    assert response.status_code == 400
    assert sentence in response.text
    assert f'value="{sent["name"]}"' in response.text
    assert Entity.objects.get() == ann


def test_what_was_ticked_stays_ticked(alices, ann):
    fact, mention = FactFactory(subject=ann), MentionFactory(entity=ann)
    ticked = {"fact": fact.uuid, "drawer": mention.drawer.uuid, "alias": "Annie"}
    response = alices.post(page(ann, "entity_split"), {"name": "", **ticked})
    checked = re.findall(r'value="([^"]+)" checked', response.text)
    assert sorted(checked) == sorted(map(str, ticked.values()))


def test_ids_that_are_none_are_not_found(alices, ann):
    sent = {"name": "Ann", "fact": ["nonsense"]}
    assert alices.post(page(ann, "entity_split"), sent).status_code == 404


def test_what_was_built_upon_is_not_undone_first(alices, palace, ann, annie, tea):
    first = alices.post(page(ann, "entity_merge"), {"other": annie.uuid}, follow=True)
    other = EntityFactory(palace=palace, name="Nan")
    alices.post(page(ann, "entity_merge"), {"other": other.uuid})
    response = alices.post(undo_in(first), follow=True)
    assert "Something was done after this." in response.text
    assert Entity.objects.count() == 1


def test_the_number_of_queries_does_not_grow_with_the_forms(
    alices, palace, ann, drawer, django_assert_max_num_queries
):
    for number in range(15):
        FactFactory(subject=ann, object_entity=EntityFactory(palace=palace, name=f"Ann {number}"))
        MentionFactory(entity=ann, drawer=DrawerFactory(room=drawer.room))
    with django_assert_max_num_queries(11):
        assert alices.get(page(ann, "entity_edit")).status_code == 200


def test_a_person_is_renamed_and_back(alices, ann):
    rename = page(ann, "entity_rename")
    done = alices.post(rename, {"name": " Anna  Berg-Silva "}, follow=True)
    ann.refresh_from_db()
    assert (ann.name, ann.slug) == ("Anna Berg-Silva", "anna-berg-silva")
    assert ann.aliases == ["Annie", "Ann Berg"]
    assert "“Ann Berg” is called “Anna Berg-Silva” now." in done.text
    alices.post(rename, {"name": "Ann Berg", "undo": "1"})
    ann.refresh_from_db()
    assert (ann.name, ann.slug, ann.aliases) == ("Ann Berg", "ann-berg", ["Annie"])


@pytest.mark.parametrize(
    ("name", "sentence"), [(" ", "Write a name"), ("Annie", "Another person has the name")]
)
def test_a_name_that_is_none_or_taken_is_refused(alices, ann, annie, name, sentence):
    response = alices.post(page(ann, "entity_rename"), {"name": name})
    assert response.status_code == 400
    assert sentence in response.text
    ann.refresh_from_db()
    assert ann.name == "Ann Berg"


def test_nobody_else_renames_a_person_and_nobody_the_user(alices, bobs, palace, ann):
    assert bobs.post(page(ann, "entity_rename"), {"name": "Eve"}).status_code == 404
    you = EntityFactory(palace=palace, name="User", slug="user")
    assert alices.post(page(you, "entity_rename"), {"name": "Eve"}).status_code == 400
    assert "new-name" not in alices.get(page(you, "entity_edit")).text
