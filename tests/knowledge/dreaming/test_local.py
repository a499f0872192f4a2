"""What the rules find by themselves: what says the same, what is at odds, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bench.management.commands.bench_dreams import Group, Planted, read
from palace.knowledge.dreaming.dream_run import dream
from palace.models import Proposal
from tests.factories import EntityFactory
from tests.knowledge.dreaming.conftest import LONG_AGO

LATER = LONG_AGO + timedelta(days=90)
STANCES = {"likes": "positive", "dislikes": "negative"}


@pytest.fixture
def between(hold, palace):
    """What a dream finds between two facts; the second was said later."""

    def between(one, other, **more):
        for (predicate, object, text), at in zip((one, other), (LONG_AGO, LATER), strict=True):
            stance = STANCES.get(predicate, "")
            hold(text, predicate, object, at, single=False, stance=stance, **more)
        dream(palace, with_model=False)
        return list(Proposal.objects.values_list("kind", flat=True))

    return between


def test_what_says_the_same_is_found(between):
    tea = ("likes", "tea", "User enjoys tea"), ("likes", "tea", "User likes tea")
    assert between(*tea) == ["merge"]


def test_what_is_at_odds_is_found_and_the_newer_holds(between):
    one = ("lives_in", "Oslo", "User lives in Oslo")
    other = ("resides_in", "Rome", "User lives in Rome")
    assert between(one, other) == ["contradiction"]
    (proposal,) = Proposal.objects.all()
    assert [about.fact.text for about in proposal.about.all()] == [one[2], other[2]]
    assert [about.role for about in proposal.about.all()] == ["source", "beside"]


def test_what_only_looks_so_is_left_alone(between):
    queen = ("likes", "Queen", "User likes Queen")
    assert between(queen, ("dislikes", "queens", "User dislikes queens")) == []


def test_what_is_over_is_at_odds_with_nothing(between):
    porto = ("lives_in", "Porto", "User lives in Porto")
    rome = ("lives_in", "Rome", "User lives in Rome")
    assert between(porto, rome, valid_to=LATER - timedelta(days=1)) == []


def test_what_is_said_of_others_is_left_alone(palace, hold):
    for name in ("Ann", "Ben"):
        person = EntityFactory(palace=palace, name=name, slug=name.lower())
        hold("Likes tea", "likes", "tea", subject=person)
    dream(palace, with_model=False)
    assert not Proposal.objects.exists()


def test_an_opinion_on_a_thing_is_at_odds_with_a_liking_of_it(palace, hold):
    rust = EntityFactory(palace=palace, name="Rust", slug="rust", kind="item")
    hold("User loves Rust", "likes", "Rust", stance="positive", type="preference")
    about = {"subject": rust, "type": "opinion"}
    hold("Rust is a chore", "opinion", "a chore", LATER, stance="negative", **about)
    dream(palace, with_model=False)
    assert Proposal.objects.get().kind == "contradiction"


def test_three_that_say_the_same_become_one(palace, hold):
    for number, verb in enumerate(("likes", "enjoys", "loves")):
        hold(f"User {verb} tea", "likes", "tea", LONG_AGO + timedelta(days=number))
    dream(palace, with_model=False)
    assert len(Proposal.objects.get().payload["before"]) == 3


def test_planted_facts_contradict_nothing_else_of_their_people():
    groups = read()
    counts = {
        kind: sum(group.kind == kind for group in groups) for kind in {g.kind for g in groups}
    }
    assert counts == {"duplicates": 200, "contradictions": 50, "near_misses": 100, "others": 100}
    assert all(isinstance(group, Group) and len(group.texts) <= 2 for group in groups)
    assert Planted("likes", "tea", "User likes tea").of("Ivo").text == "Ivo likes tea"
