"""What surrounds a message: the exchange it is part of, and its room."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from language.english.message_traits import Trait
from palace.mining.pipeline import mine
from palace.models import Drawer
from palace.recall.candidates import find_candidates
from palace.recall.keyword import by_words
from palace.recall.query import read_query
from palace.recall.scoring import answers, exchange_words, room_best
from palace.recall.semantic import by_meaning
from palace.storage.indexing.spaces import active_space
from tests.conversations import EVERYTHING, START, transcript

TALK = transcript(
    "Where do they sell violins?",
    "In Cremona, near the square.",
    "Thank you. Violins are dear there.",
    "A bow alone costs a month's rent.",
    id="violins",
)


@pytest.fixture
def looked_at(palace):
    """A question's candidates in the order of the talk, and its words."""
    mine(palace, TALK)
    query = read_query(
        palace, active_space(), "violins in Cremona", now=START, as_of=None, by_meaning=True
    )
    words = by_words(palace, query.terms)
    candidates = find_candidates(
        palace, query, by_meaning(palace, active_space(), query.adapted), words
    )
    keys = list(Drawer.objects.order_by("position").values_list("pk", flat=True))
    assert candidates.drawers.tolist() == keys
    return candidates, words


def test_a_message_knows_the_ones_before_and_after(looked_at):
    candidates, _ = looked_at
    first, second, third, fourth = candidates.drawers.tolist()
    assert candidates.before.tolist() == [0, first, second, third]
    assert candidates.after.tolist() == [second, third, fourth, 0]
    asking = (candidates.before_traits & Trait.ENDS_ASKING) > 0
    assert asking.tolist() == [False, True, False, False]


def counts_of(candidates, words):
    around = (candidates.before, candidates.drawers, candidates.after)
    return [words.term_counts.of(keys) for keys in around]


def test_an_exchange_holds_the_words_of_three_messages(looked_at):
    candidates, words = looked_at
    scores, coverage = exchange_words(candidates, words, counts_of(candidates, words))
    whole, half = coverage[[1, 3]]
    assert whole == pytest.approx(1)
    assert 0 < half < whole
    assert scores[1] > words.at(candidates.drawers)[1]


def test_nothing_is_covered_by_a_message_whose_exchange_has_none_of_the_words(palace, looked_at):
    candidates, words = looked_at
    mine(palace, transcript("My bus was late.", id="bus"))
    bus = Drawer.objects.get(conversation="bus").pk
    alone = dataclasses.replace(
        candidates,
        drawers=np.array([bus]),
        before=np.array([0]),
        after=np.array([0]),
        terms=np.array([3], np.float32),
        before_terms=np.zeros(1, np.float32),
        after_terms=np.zeros(1, np.float32),
    )
    scores, coverage = exchange_words(alone, words, counts_of(alone, words))
    assert scores.tolist() == coverage.tolist() == [0]


def test_only_what_comes_right_after_a_question_answers_it(looked_at):
    candidates, _ = looked_at
    before = np.array([1, 2, 3, 4], np.float32)
    found = answers(candidates, before)
    assert found.tolist() == [0, 2, 0, 0]
    assert found.dtype == np.float32


def test_the_message_before_is_the_last_that_is_not_in_the_trash(palace, looked_at):
    Drawer.objects.get(text=TALK.turns[1].text).trash()
    query = read_query(palace, active_space(), "violins", now=START, as_of=None, by_meaning=True)
    meaning = by_meaning(palace, active_space(), query.adapted)
    candidates = find_candidates(palace, query, meaning, by_words(palace, query.terms))
    first, third, _ = candidates.drawers.tolist()
    place = candidates.drawers.tolist().index(third)
    assert candidates.before[place] == first
    assert answers(candidates, np.ones(3, np.float32))[place] == 1


def test_a_room_is_as_good_as_its_best_message(palace):
    for one in EVERYTHING:
        mine(palace, one)
    query = read_query(palace, active_space(), "bread", now=START, as_of=None, by_meaning=True)
    meaning = by_meaning(palace, active_space(), query.adapted)
    candidates = find_candidates(palace, query, meaning, by_words(palace, query.terms))
    scores = np.arange(len(candidates), dtype=np.float32) - 5
    [found, again] = room_best(candidates, [scores] * 2, np.ones(len(candidates), dtype=np.bool_))
    assert found.tolist() == again.tolist()
    rooms = candidates.rooms.tolist()
    assert len(set(rooms)) == len(EVERYTHING)
    for place, room in enumerate(rooms):
        own = [s for r, s in zip(rooms, scores.tolist(), strict=True) if r == room]
        assert found[place] == max(own)


def test_what_states_nothing_makes_no_room_better(looked_at):
    candidates, _ = looked_at
    scores = np.array([4, 1, 2, 0], np.float32)
    [found] = room_best(candidates, [scores], np.array([False, True, True, True]))
    assert found.tolist() == [2] * 4
    [found] = room_best(candidates, [scores], np.zeros(4, np.bool_))
    assert found.tolist() == [0] * 4
