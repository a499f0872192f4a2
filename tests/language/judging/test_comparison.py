"""Two facts compared by rule: they say the same, contradict each other, or neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from language.english.judging.comparison import (
    NEAR,
    Statement,
    contradict,
    opinions_against_tastes,
    pairs_sharing_words,
    say_the_same,
)

EARLIER = datetime(2024, 1, 10, tzinfo=UTC)
LATER = EARLIER + timedelta(days=90)
STANCES = {"likes": "positive", "dislikes": "negative"}


def statement(predicate, object, text, key=1, **more):
    values = {
        "type": "fact",
        "scope": ("", ""),
        "subject": "User",
        "subject_key": 1,
        "stance": STANCES.get(predicate, ""),
        "valid_from": EARLIER,
        **more,
    }
    return Statement(key=key, predicate=predicate, object=object, text=text, **values)


def pair(one, other, **more):
    return statement(*one, **more), statement(*other, key=2, valid_from=LATER)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("likes", "tea", "User enjoys tea"), ("likes", "tea", "User likes tea")),
        (
            ("lives_in", "Oslo", "User lives in Oslo"),
            ("based_in", "Oslo", "User is based in Oslo"),
        ),
        (("smokes", "no", "User doesn't smoke"), ("smokes", "no", "User does not smoke")),
        (
            ("does", "archery", "User does archery"),
            ("likes", "archery", "User enjoys archery"),
        ),
        (("reports_to", "Ann", "User reports to Ann"), ("boss", "Ann", "User's boss is Ann")),
        (
            ("speaks", "Dutch and French", "User speaks Dutch and French"),
            ("speaks", "French and Dutch", "User speaks French and Dutch"),
        ),
    ],
)
def test_facts_that_say_the_same(one, other):
    first, second = pair(one, other)
    assert say_the_same(first, second, NEAR)
    assert say_the_same(second, first, NEAR)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("lives_in", "Oslo", "User lives in Oslo"), ("resides_in", "Rome", "User lives in Rome")),
        (("likes", "golf", "User likes golf"), ("dislikes", "golf", "User dislikes golf")),
        (("owns", "boat", "User owns a boat"), ("owns", "boat", "User does not own a boat")),
        (("has_pet", "two cats", "User has two cats"), ("has_pet", "3 cats", "User has 3 cats")),
        (
            ("prefers", "tabs to spaces", "User prefers tabs to spaces"),
            ("prefers", "spaces to tabs", "User prefers spaces to tabs"),
        ),
        (("diet", "vegan", "User is vegan"), ("likes", "steak", "User likes steak")),
    ],
)
def test_facts_that_contradict_each_other(one, other):
    older, newer = pair(one, other)
    assert contradict(older, newer)
    assert not say_the_same(older, newer, NEAR)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            ("friend_of", "Ann", "User sent Ann to Ben"),
            ("friend_of", "Ben", "User sent Ben to Ann"),
        ),
        (("likes", "Jaws 2", "User likes Jaws 2"), ("likes", "Jaws 3", "User likes Jaws 3")),
        (("does", "reads", "User writes chapter two"), ("does", "x", "User writes chapter six")),
        (("likes", "tea", "User likes tea"), ("likes", "coffee", "User likes coffee")),
        (("knows", "C", "User knows C"), ("knows", "C++", "User knows C++")),
        (("likes", "Queen", "User likes Queen"), ("dislikes", "queens", "User dislikes queens")),
        (("likes", "red wine", "User likes red wine"), ("dislikes", "wine", "User dislikes wine")),
        (("age", "5", "User's son is 5"), ("age", "7", "User's daughter is 7")),
        (("does", "runs", "User runs at dawn"), ("does", "runs", "User runs at dusk")),
        (("likes", "cake", "User likes cake"), ("likes", "cake", "User only likes cake at home")),
        (("does", "archery", "User does archery"), ("likes", "golf", "User enjoys golf")),
    ],
)
def test_facts_that_only_look_alike(one, other):
    older, newer = pair(one, other)
    assert not say_the_same(older, newer, NEAR)
    assert not contradict(older, newer)


def test_events_happen_again():
    older, newer = pair(
        ("visited", "Rome", "User visited Rome"),
        ("visited", "Rome", "User was visiting Rome"),
        type="event",
    )
    assert not say_the_same(older, newer, 1.0)


def test_a_fact_that_has_ended_contradicts_nothing():
    porto, rome = (("lives_in", city, f"User lives in {city}") for city in ("Porto", "Rome"))
    assert contradict(*pair(porto, rome))
    assert not contradict(*pair(porto, rome, valid_to=LATER - timedelta(days=1)))


def test_only_a_close_vector_makes_two_wordings_the_same():
    one = statement("lives_in", "Leeds", "User lives in Leeds")
    other = statement("lives_in", "Leeds", "User has found a home in Leeds", key=2)
    assert say_the_same(one, other, NEAR)
    assert not say_the_same(one, other, 0.0)


def test_a_diet_is_compared_with_every_food():
    statements = [
        statement("likes", "steak", "User likes steak"),
        statement("owns", "boat", "User owns a boat", key=2),
        statement("diet", "vegan", "User is vegan", key=3),
    ]
    assert set(pairs_sharing_words(statements, [0, 1, 2])) == {(0, 2)}


def test_an_opinion_contradicts_a_taste_of_the_same_scope():
    taste = statement("likes", "Rust", "User loves Rust", type="preference")
    about = {"subject": "Rust", "subject_key": 2, "type": "opinion", "stance": "negative"}
    opinion = statement("opinion", "a chore", "Rust is a chore", key=2, **about)
    assert list(opinions_against_tastes([taste, opinion])) == [(opinion, taste)]
    elsewhere = statement(
        "opinion", "a chore", "Rust is a chore", key=3, **about | {"scope": ("", "run")}
    )
    assert list(opinions_against_tastes([taste, elsewhere])) == []
