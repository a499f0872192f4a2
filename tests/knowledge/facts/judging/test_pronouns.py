"""Whom "she" means: somebody named earlier in the conversation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO


@pytest.fixture
def held(palace):
    """Send each message in a call of its own, a day apart; return the facts about people."""

    def tell(*messages, conversations=("one",)):
        for day, message in enumerate(messages):
            named = conversations[day % len(conversations)]
            remember(palace, message, conversation=named, now=LONG_AGO + timedelta(days=day))
        facts = Fact.objects.active().filter(predicate__in=("works_at", "lives_in"))
        return {(fact.subject.name, fact.object) for fact in facts.select_related("subject")}

    return tell


def test_she_is_who_the_last_call_was_about(held):
    assert held(
        "My wife Ayaka works at Siemens.",
        "She handed in her notice today!",
        "Her new job is at Bosch, much calmer.",
    ) == {("Ayaka", "Bosch")}


def test_a_change_is_hers_too(held):
    homes_found = held("My sister Freya lives in Aarhus.", "She's moved to Odense, closer to us.")
    assert homes_found == {("Freya", "Odense")}


def test_she_is_nobody_of_another_conversation(held):
    homes_found = held(
        "My sister Freya lives in Aarhus.",
        "She's moved to Odense, closer to us.",
        conversations=("one", "another"),
    )
    assert homes_found == {("Freya", "Aarhus")}


def test_nor_when_the_older_conversation_comes_late(palace):
    """A replay asks about the conversation of each statement, as the first reading did."""
    homes_found = [("one", "My sister Freya lives in Aarhus.", 3), ("two", "She lives in Rome.", 5)]
    homes_found += [("three", "My brother Anton lives in Graz.", 1)]
    for conversation, message, day in homes_found:
        remember(palace, message, conversation=conversation, now=LONG_AGO + timedelta(days=day))
    homes = Fact.objects.within(palace).active().filter(predicate="lives_in")
    assert {fact.object for fact in homes} == {"Aarhus", "Graz"}


def test_a_known_person_named_again_is_meant(held):
    homes_found = held(
        "My sister Freya lives in Aarhus.",
        "My sister Freya lives in Aarhus, as you know.",
        "She's moved to Odense.",
        conversations=("one", "two", "two"),
    )
    assert homes_found == {("Freya", "Odense")}


def test_she_is_no_brother(held):
    homes_found = held("My brother Anton lives in Graz.", "She lives in Rome.")
    assert homes_found == {("Anton", "Graz")}


def test_of_two_it_is_not_known_which(held):
    homes_found = held("My sisters Ada and Eva live in Ulm.", "She lives in Rome now.")
    assert "Rome" not in {place for _, place in homes_found}


def test_whom_the_message_has_named_comes_first(held):
    homes_found = held(
        "My sister Freya lives in Aarhus.", "Saw a talk with Dagny Holm. She lives in Reykjavik."
    )
    assert ("Freya", "Aarhus") in homes_found


def test_a_pronoun_without_anyone_named_is_no_fact(held):
    assert held("She lives in Rome.") == set()
