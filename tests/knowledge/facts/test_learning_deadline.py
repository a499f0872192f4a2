"""A deadline ends the learning of facts amid many messages; what was not read stays unread."""

from __future__ import annotations

from datetime import timedelta

import pytest

from language.transcripts import Transcript, Turn
from llm.deadline import within
from palace.knowledge.facts.fact_learning import BY_MINING, learn
from palace.models import Drawer, Fact, Statement
from palace.storage import file_transcript
from tests.factories import PalaceFactory
from tests.knowledge.facts.conftest import LONG_AGO

PLANTS = ["basil", "mint", "sage", "dill", "thyme"]


def about(number):
    plant = f"{PLANTS[number % 5]} number {number}"
    return (
        f"I own a pot of {plant}. I like {plant}. I bought a book about {plant}. "
        f"My friend Nina{number} works at Siemens{number}. I am {number} years old."
    )


def filed(palace, count, name="one", start=LONG_AGO):
    """The drawers of a conversation of messages with five facts each."""
    turns = [
        Turn(f"{name} {n}", "user", about(n), start + timedelta(minutes=n)) for n in range(count)
    ]
    room = file_transcript(palace, Transcript("api", name, "", tuple(turns))).room
    return list(Drawer.objects.filter(room=room).order_by("position"))


def read(palace):
    rows = Drawer.objects.within(palace).exclude(facts_read_at=None)
    return set(rows.values_list("pk", flat=True))


def with_statements(palace):
    return set(Statement.objects.filter(palace=palace).values_list("drawer", flat=True))


def active(palace):
    return sorted(Fact.objects.within(palace).active().values_list("text", flat=True))


@pytest.mark.parametrize("seconds", [0.05, 0.6])
def test_messages_are_read_whole_or_not_at_all(palace, seconds):
    drawers = filed(palace, 150)
    with within(seconds):
        learnt = learn(palace, drawers, BY_MINING)
    assert len(read(palace)) < 150
    assert read(palace) == with_statements(palace)
    assert {line.fact.pk for line in learnt if line.fact} == set(
        Fact.objects.within(palace).values_list("pk", flat=True)
    )


@pytest.mark.exhaustive
def test_the_rest_is_learnt_later_as_if_nothing_had_been(palace):
    other = PalaceFactory()
    for place, seconds in ((palace, 0.4), (other, 600)):
        drawers = filed(place, 30)
        with within(seconds):
            learn(place, drawers, BY_MINING)
        learn(place, drawers, BY_MINING)
    assert len(active(palace)) > 100
    assert active(palace) == active(other)


def test_a_late_conversation_is_not_replayed_beyond_the_deadline(palace):
    learn(palace, filed(palace, 20), BY_MINING)
    before = active(palace)
    late = filed(palace, 10, "two", LONG_AGO - timedelta(days=9))
    with within(0.02):
        learn(palace, late, BY_MINING)
    assert not read(palace) & {drawer.pk for drawer in late}
    assert active(palace) == before
    learn(palace, late, BY_MINING)
    assert with_statements(palace) >= {drawer.pk for drawer in late}
