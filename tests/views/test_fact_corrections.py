"""The ways to put a fact right."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from palace.knowledge.facts.fact_edits import delete, rewrite
from palace.models import Fact, FactEvent
from tests.factories import EvidenceFactory, FactFactory
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
    assert (held.object, held.object_entity.name) == ("Alfama", "Alfama")
    assert not held.evidence.exists()
    assert FactEvent.objects.get(memory=fact.memory).by == "person"
    undo = re.search(
        r'action="([^"]+/rewrite/)".*?name="text" value="([^"]+)"', response.text, re.S
    )
    alices.post(undo[1], {"text": undo[2]})
    back = Fact.objects.active().get(memory=fact.memory)
    assert (back.text, back.object_entity) == (fact.text, fact.object_entity)
    assert back.evidence.count() == 1


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
    assert "Fact deleted." in response.text
    assert "Somebody deleted it" in response.text
    assert listed(alices.get(FACTS)) == []
    assert listed(alices.get(FACTS, {"state": "dropped"})) == [fact.text]
    back = post(alices, fact, "restore_fact", version=fact.uuid)
    assert "Fact restored." in back.text
    assert listed(alices.get(FACTS)) == [fact.text]


def test_an_earlier_version_can_be_held_again(alices, palace, fact):
    rewrite(palace, fact.memory, "User lives in Belém", BY_PERSON)
    delete(palace, fact.memory, BY_PERSON)
    assert "Restore “User lives in Lisbon”" in alices.get(address(fact)).text
    post(alices, fact, "restore_fact", version=fact.uuid)
    assert Fact.objects.active().get(memory=fact.memory).text == "User lives in Lisbon"


def test_what_is_held_in_its_place_is_told_in_the_form(alices, palace, fact):
    delete(palace, fact.memory, BY_PERSON)
    other = FactFactory(
        subject=fact.subject, predicate="lives_in", single=True, text="User lives in Porto"
    )
    response = post(alices, fact, "restore_fact")
    assert response.status_code == 400
    assert "“User lives in Porto” is active in its place; delete that first" in response.text
    assert f'href="{address(other)}"' in response.text
    assert not Fact.objects.active().filter(memory=fact.memory).exists()


def test_doing_it_twice_is_told_and_does_nothing(alices, fact):
    post(alices, fact, "retire_fact")
    events = FactEvent.objects.count()
    assert "There was nothing to delete" in post(alices, fact, "retire_fact").text
    assert "This fact is inactive" in post(alices, fact, "rewrite_fact", text="New").text
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


def undo_of(response):
    """Address and fields of the form that undoes what was done just now."""
    form = re.search(
        r'<form method="post" action="([^"]+)">(?:(?!</form>).)*Undo', response.text, re.S
    )
    return form[1], dict(re.findall(r'name="([^"]+)" value="([^"]*)"', form[0]))


def test_a_fact_is_deleted_with_its_words_and_undo_brings_back_both(alices, fact, said):
    assert "Also move the message it comes from to the trash" in alices.get(address(fact)).text
    response = post(alices, fact, "retire_fact", words="1")
    assert "Fact deleted, and 1 message it came from moved to the trash." in response.text
    assert fact.text in alices.get(reverse("trash")).text
    said.refresh_from_db()
    assert said.trashed_at is not None
    where, fields = undo_of(response)
    back = alices.post(where, fields, follow=True)
    assert "Fact restored, and 1 message with it from the trash." in back.text
    said.refresh_from_db()
    assert said.trashed_at is None
    assert Fact.objects.active().get(memory=fact.memory).evidence.get().drawer == said
    # The undoing can be undone in turn: both go again.
    where, fields = undo_of(back)
    alices.post(where, fields)
    said.refresh_from_db()
    assert said.trashed_at is not None
    assert not Fact.objects.active().exists()


def test_without_a_choice_the_words_stay(alices, fact, said):
    post(alices, fact, "retire_fact")
    said.refresh_from_db()
    assert said.trashed_at is None


def test_words_that_another_fact_rests_on_are_not_offered(alices, fact, said):
    EvidenceFactory(fact=FactFactory(subject=fact.subject), drawer=said)
    assert 'name="words"' not in alices.get(address(fact)).text
    assert "Fact deleted." in post(alices, fact, "retire_fact", words="1").text
    said.refresh_from_db()
    assert said.trashed_at is None


def test_the_trash_brings_the_fact_back_with_its_message(alices, fact, said):
    post(alices, fact, "retire_fact", words="1")
    alices.post(reverse("restore_drawer", args=[said.uuid]))
    assert Fact.objects.active().get(memory=fact.memory).text == fact.text


def test_a_sentence_that_cannot_be_read_is_said_so(alices, fact):
    response = post(alices, fact, "rewrite_fact", text="It is complicated")
    assert "could not be read as one statement" in response.text
    assert Fact.objects.active().get(memory=fact.memory).object == ""


def test_a_sentence_that_conflicts_is_refused_beside_the_field(alices, fact):
    work = FactFactory(subject=fact.subject, predicate="works_at", text="User works at Siemens")
    response = post(alices, work, "rewrite_fact", text="User lives in Porto")
    assert response.status_code == 400
    assert "“User lives in Lisbon” is active in its place" in response.text
    assert "User lives in Porto</textarea>" in response.text
    assert set(Fact.objects.active()) == {fact, work}
