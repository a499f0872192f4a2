"""The ways to put a fact right."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from palace.facts.editing import delete, rewrite
from palace.models import Fact, FactEvent
from tests.factories import FactFactory
from tests.views.conftest import BY_PERSON, FACTS, address, listed


def post(client, fact, action, **sent):
    return client.post(address(fact, action), sent, follow=True)


def test_a_fact_is_said_differently_and_back(alices, fact):
    response = post(
        alices, fact, "rewrite_fact", text=" User lives\n in Alfama ", version=fact.uuid
    )
    assert response.redirect_chain == [(address(fact), 302)]
    held = Fact.objects.active().get(memory=fact.memory)
    assert held.text == "User lives in Alfama"
    assert held.evidence.count() == 1
    assert FactEvent.objects.get(memory=fact.memory).by == "person"
    undo = re.search(
        r'action="([^"]+/rewrite/)".*?name="text" value="([^"]+)"', response.text, re.S
    )
    alices.post(undo[1], {"text": undo[2]})
    assert Fact.objects.active().get(memory=fact.memory).text == fact.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "Write what it should say."),
        ("x" * 2001, "This is too long for one statement."),
        ("a\0b", "a character that cannot be stored"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(alices, fact, text, sentence):
    response = post(alices, fact, "rewrite_fact", text=text)
    assert response.status_code == 400
    assert sentence in response.text
    assert 'aria-invalid="true"' in response.text
    assert Fact.objects.get(memory=fact.memory).text == fact.text


def test_a_change_of_what_changed_meanwhile_is_asked_about(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    sent = {"text": "User lives in Alfama", "version": fact.uuid}
    response = post(alices, fact, "rewrite_fact", **sent)
    assert response.status_code == 400
    assert "It was changed meanwhile and says “User lives in Belém” now." in response.text
    assert "User lives in Alfama</textarea>" in response.text
    version = re.search(r'name="version" value="([^"]+)"', response.text)[1]
    assert post(alices, fact, "rewrite_fact", **{**sent, "version": version}).status_code == 200
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Alfama"


def test_a_fact_is_deleted_stays_on_record_and_is_restored(alices, fact):
    response = post(alices, fact, "retire_fact")
    assert response.redirect_chain == [(address(fact), 302)]
    assert "Deleted. Nothing goes by it any more." in response.text
    assert "Somebody deleted it" in response.text
    assert listed(alices.get(FACTS)) == []
    assert listed(alices.get(FACTS, {"state": "dropped"})) == [fact.text]
    back = post(alices, fact, "restore_fact", version=fact.uuid)
    assert "It is held again." in back.text
    assert listed(alices.get(FACTS)) == [fact.text]


def test_an_earlier_version_can_be_held_again(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    delete(palace, fact.memory, BY_PERSON)
    assert "Hold “User lives in Lisbon” again" in alices.get(address(fact)).text
    post(alices, fact, "restore_fact", version=fact.uuid)
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Lisbon"


def test_what_is_held_in_its_place_is_told_in_the_form(alices, palace, fact):
    delete(palace, fact.memory, BY_PERSON)
    other = FactFactory(
        subject=fact.subject, predicate="lives_in", single=True, text="User lives in Porto"
    )
    response = post(alices, fact, "restore_fact")
    assert response.status_code == 400
    assert "“User lives in Porto” is held in its place; delete that first" in response.text
    assert f'href="{address(other)}"' in response.text
    assert not Fact.objects.active().filter(memory=fact.memory).exists()


def test_doing_it_twice_is_told_and_does_nothing(alices, fact):
    post(alices, fact, "retire_fact")
    events = FactEvent.objects.count()
    assert "There was nothing to delete" in post(alices, fact, "retire_fact").text
    assert "This is held no longer" in post(alices, fact, "rewrite_fact", text="New").text
    assert FactEvent.objects.count() == events
    post(alices, fact, "restore_fact")
    assert post(alices, fact, "restore_fact").status_code == 400
    assert Fact.objects.active().filter(memory=fact.memory).count() == 1


@pytest.mark.parametrize("version", ["nonsense", "7e1f0a52-3a5c-4c6b-9f0e-5b8f2f1c9d10"])
def test_a_version_that_is_none_is_not_found(alices, fact, version):
    assert post(alices, fact, "restore_fact", version=version).status_code == 404


@pytest.mark.parametrize("action", ["rewrite_fact", "retire_fact", "restore_fact"])
def test_a_memory_that_is_none_is_not_found(alices, palace, action):
    made_up = reverse(action, args=[uuid.uuid4()])
    assert alices.post(made_up, {"text": "New"}).status_code == 404
