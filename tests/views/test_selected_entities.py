"""Several people or things merged, or what names them trashed, at once."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.urls import reverse

from language.facts import USER
from palace.models import Drawer, Entity, Fact
from palace.views.entities import edits
from tests.factories import DrawerFactory, EntityFactory, FactFactory, MentionFactory

SELECTED = "/memory/people-and-things/selected/"


def post(client, do, entities, **sent):
    chosen = [entity.uuid for entity in entities]
    return client.post(SELECTED, {"do": do, "entity": chosen, **sent}, follow=True)


def names():
    return set(Entity.objects.values_list("name", flat=True))


@pytest.fixture
def three(palace):
    names = {"tom": "Tom", "tommy": "Tommy", "tommy-co": "Thomas & Co"}
    made = [EntityFactory(palace=palace, slug=slug, name=name) for slug, name in names.items()]
    FactFactory(subject=made[1], text="Tommy sails")
    return made


def test_every_row_has_a_box_of_the_one_form(alices, three):
    for address in (reverse("entities"), f"{reverse('entities')}?kind=person"):
        page = alices.get(address).text
        assert page.count('class="pick" form="selected" type="checkbox" name="entity"') == 3
        assert page.count(f'action="{SELECTED}"') == 1


def test_merging_asks_which_name_stays_the_best_known_first(alices, three):
    asked = post(alices, "merge", three)
    offered = re.findall(r'name="keep" value="([^"]+)"( checked)?', asked.text)
    assert offered[0] == (str(three[1].uuid), " checked")
    assert len(offered) == 3
    assert len(names()) == 3


def test_several_become_one_and_are_taken_apart_again(alices, three):
    back = f"{reverse('entities')}?kind=person"
    done = post(alices, "merge", three, keep=three[0].uuid, next=back)
    assert done.redirect_chain == [(back, 302)]
    assert "“Tommy” and “Thomas &amp; Co” are part of “Tom” now." in done.text
    assert names() == {"Tom"}
    assert Fact.objects.get().subject == three[0]
    merges = re.findall(r'name="merge" value="([^"]+)"', done.text)
    undone = alices.post(SELECTED, {"do": "undo", "merge": merges}, follow=True)
    assert "Undone. It is as it was before." in undone.text
    assert names() == {"Tom", "Tommy", "Thomas & Co"}
    again = alices.post(SELECTED, {"do": "undo", "merge": merges}, follow=True)
    assert "There was nothing to undo" in again.text


def test_an_undo_that_fails_half_way_undoes_nothing(alices, palace, three):
    done = post(alices, "merge", three, keep=three[0].uuid)
    merges = re.findall(r'name="merge" value="([^"]+)"', done.text)
    EntityFactory(palace=palace, name="Tommy", slug=three[1].slug, kind=three[1].kind)
    refused = alices.post(SELECTED, {"do": "undo", "merge": merges}, follow=True)
    assert "There is another “Tommy” now." in refused.text
    assert "Thomas & Co" not in names()


def test_you_stay_with_any_other_selected(alices, palace, three):
    you = EntityFactory(palace=palace, name=USER)
    asked = post(alices, "merge", [*three, you])
    assert re.findall(r'name="keep" value="([^"]+)"', asked.text) == [str(you.uuid)]
    refused = post(alices, "merge", [*three, you], keep=three[0].uuid)
    assert "That name is no longer here" in refused.text
    post(alices, "merge", [three[0], you], keep=you.uuid)
    assert names() == {USER, "Tommy", "Thomas & Co"}


def test_messages_that_name_them_are_counted_first_and_come_back(alices, drawer, three):
    named, other, both = (DrawerFactory(room=drawer.room) for _ in range(3))
    MentionFactory(entity=three[0], drawer=named)
    MentionFactory(entity=three[1], drawer=other)
    MentionFactory(entity=three[0], drawer=both)
    MentionFactory(entity=three[1], drawer=both)
    asked = post(alices, "trash", three[:2])
    assert "<strong>3 messages</strong>" in asked.text
    assert Drawer.objects.trashed().count() == 0
    done = post(alices, "trash", three[:2], sure="1")
    assert "Moved 3 messages to the trash" in done.text
    assert list(Drawer.objects.kept()) == [drawer]
    alices.post(re.search(r'action="(/memory/trash/[^"]+)"', done.text)[1])
    assert Drawer.objects.kept().count() == 4


def test_without_anything_to_do_it_is_said(alices, three, monkeypatch):
    assert "Nothing was selected." in post(alices, "merge", []).text
    assert "Select two or more" in post(alices, "merge", three[:1]).text
    assert "no message in the palace names them" in post(alices, "trash", three).text
    monkeypatch.setattr(edits, "MOST_AT_ONCE", 2)
    assert "At most 2" in post(alices, "merge", three).text
    post(alices, "", three)
    assert len(names()) == 3


@pytest.mark.parametrize("do", ["merge", "trash", "undo"])
def test_what_is_not_ones_own_is_not_found(bobs, alices, drawer, three, do):
    MentionFactory(entity=three[0], drawer=drawer)
    merged = post(alices, "merge", three[1:], keep=three[1].uuid)
    merges = re.findall(r'name="merge" value="([^"]+)"', merged.text)
    sent = {"keep": three[0].uuid, "sure": "1", "merge": merges}
    assert post(bobs, do, three[:2], **sent).status_code == 404
    assert post(alices, do, [], entity=uuid4(), merge=uuid4()).status_code == 404
    assert post(alices, do, [], entity="nonsense", merge="nonsense").status_code == 404
    assert "no longer here" in post(alices, "merge", three[:2], keep="nonsense").text
    assert names() == {"Tom", "Tommy"}
    assert Drawer.objects.kept().count() == 1
