"""Whom "she" stands for, who was named earlier in the conversation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from palace.knowledge.facts.fact_learning import remember
from palace.models import Fact
from tests.knowledge.facts.conftest import LONG_AGO


@pytest.fixture
def held(palace):
    """Tells each message in a call of its own, a day apart; gives what is held of people."""

    def tell(*messages, conversations=("one",)):
        for day, message in enumerate(messages):
            named = conversations[day % len(conversations)]
            remember(palace, message, conversation=named, now=LONG_AGO + timedelta(days=day))
        facts = Fact.objects.active().filter(predicate__in=("works_at", "lives_in"))
        return {(fact.subject.name, fact.object) for fact in facts.select_related("subject")}

    return tell


def test_she_is_whom_the_last_call_told_of(held):
    assert held(
        "My wife Ayaka works at Siemens.",
        "She handed in her notice today!",
        "Her new job is at Bosch, much calmer.",
    ) == {("Ayaka", "Bosch")}


def test_a_change_is_hers_too(held):
    told = held("My sister Freya lives in Aarhus.", "She's moved to Odense, closer to us.")
    assert told == {("Freya", "Odense")}


def test_she_is_nobody_of_another_conversation(held):
    told = held(
        "My sister Freya lives in Aarhus.",
        "She's moved to Odense, closer to us.",
        conversations=("one", "another"),
    )
    assert told == {("Freya", "Aarhus")}


def test_nor_when_the_older_conversation_comes_late(palace):
    """A replay asks about the conversation of each statement, as the first reading did."""
    told = [("one", "My sister Freya lives in Aarhus.", 3), ("two", "She lives in Rome.", 5)]
    told += [("three", "My brother Anton lives in Graz.", 1)]
    for conversation, message, day in told:
        remember(palace, message, conversation=conversation, now=LONG_AGO + timedelta(days=day))
    homes = Fact.objects.within(palace).active().filter(predicate="lives_in")
    assert {fact.object for fact in homes} == {"Aarhus", "Graz"}


def test_a_known_person_named_again_is_meant(held):
    told = held(
        "My sister Freya lives in Aarhus.",
        "My sister Freya lives in Aarhus, as you know.",
        "She's moved to Odense.",
        conversations=("one", "two", "two"),
    )
    assert told == {("Freya", "Odense")}


def test_she_is_no_brother(held):
    told = held("My brother Anton lives in Graz.", "She lives in Rome.")
    assert told == {("Anton", "Graz")}


def test_of_two_it_is_not_known_which(held):
    told = held("My sisters Ada and Eva live in Ulm.", "She lives in Rome now.")
    assert "Rome" not in {place for _, place in told}


def test_whom_the_message_has_named_comes_first(held):
    told = held(
        "My sister Freya lives in Aarhus.", "Saw a talk with Dagny Holm. She lives in Reykjavik."
    )
    assert ("Freya", "Aarhus") in told


def test_nobody_was_told_of(held):
    assert held("She lives in Rome.") == set()
