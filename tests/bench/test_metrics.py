from __future__ import annotations

import math

import pytest

from bench.metrics import (
    all_at,
    any_at,
    ingest_report,
    interval,
    interval_of_groups,
    mean,
    ndcg_at,
    percentile,
    recall_at,
    retrieval_report,
)

FOUND = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("gold", "k", "share", "some", "every"),
    [
        ({"a"}, 1, 1, 1, 1),
        ({"b"}, 1, 0, 0, 0),
        ({"a", "d"}, 2, 0.5, 1, 0),
        ({"a", "d"}, 4, 1, 1, 1),
        ({"x", "y"}, 4, 0, 0, 0),
    ],
)
def test_recall_counts_gold_among_the_first(gold, k, share, some, every):
    assert recall_at(FOUND, gold, k) == share
    assert any_at(FOUND, gold, k) == some
    assert all_at(FOUND, gold, k) == every


def test_an_interval_holds_the_mean_and_is_the_same_each_time():
    values = [0.0, 1.0] * 50
    low, high = interval(values)
    assert low < mean(values) < high
    assert interval(values) == (low, high)


def test_an_interval_narrows_with_more_values():
    few, many = interval([0.0, 1.0] * 10), interval([0.0, 1.0] * 1000)
    assert many[1] - many[0] < few[1] - few[0]


def test_percentiles_are_values_that_occurred():
    assert percentile([5, 1, 3], 0.5) == 3
    assert percentile([5, 1, 3], 1.0) == 5


@pytest.mark.parametrize(
    ("gold", "k", "worked_out"),
    [
        ({"a"}, 4, 1),
        # The second rank counts as much as the first.
        ({"b"}, 4, 1),
        ({"c"}, 4, 1 / math.log2(3)),
        ({"d"}, 4, 1 / 2),
        ({"d"}, 3, 0),
        ({"a", "b"}, 4, 1),
        # Gains 1 and 1/log2(4) of at best 1 and 1.
        ({"a", "d"}, 4, (1 + 1 / 2) / 2),
        # Gains 1 and 1/log2(3) of at best 1, 1 and 1/log2(3).
        ({"b", "c", "x"}, 4, (1 + 1 / math.log2(3)) / (2 + 1 / math.log2(3))),
        # With one place, one is the best there can be.
        ({"a", "d"}, 1, 1),
    ],
)
def test_ndcg_is_that_of_longmemeval(gold, k, worked_out):
    assert ndcg_at(FOUND, gold, k) == pytest.approx(worked_out)


def test_nothing_found_has_no_gain():
    assert ndcg_at([], {"a"}, 5) == 0


def test_the_interval_is_near_the_one_of_the_normal_distribution():
    """95 % of the means of 400 throws of a coin lie within 1.96 standard errors."""
    low, high = interval([0.0, 1.0] * 200)
    assert low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)


def test_groups_are_resampled_within_themselves():
    """Where nobody within a group differs there is nothing to be uncertain of."""
    assert interval_of_groups([[1.0] * 9, [0.0] * 3]) == (0.5, 0.5)


def test_a_report_is_the_mean_of_its_questions_by_type_and_overall():
    line = {"gold_sessions": ["s1", "s2"], "gold_turns": ["s1/3"], "type": "a", "latency_ms": 4}
    hits = [{"session": "s1", "turn": "s1/1"}, {"session": "s1", "turn": "s1/3"}]
    missed = {**line, "type": "b", "hits": [], "latency_ms": 6}
    report = retrieval_report([{**line, "hits": hits}, missed])
    of_a, overall = report["metrics"]["by_type"]["a"], report["metrics"]["overall"]
    assert of_a["session_recall@5"]["value"] == 0.5
    assert of_a["session_recall_any@5"]["value"] == 1
    assert of_a["session_recall_all@5"]["value"] == 0
    # One of two, in the first place; the best would be both in the first two.
    assert of_a["session_ndcg@5"]["value"] == 0.5
    assert of_a["turn_recall@50"]["value"] == of_a["turn_ndcg@5"]["value"] == 1
    assert overall["session_recall@5"] == {"value": 0.25, "ci": [0, 0.5], "n": 2}
    assert report["questions"] == 2
    assert report["latency_ms"] == {"p50": 6, "p95": 6}


def test_a_case_taken_in_twice_counts_once():
    line = {"case": "1", "palace": "old", "messages": 9, "seconds": 9.0}
    new = {**line, "palace": "new", "messages": 4, "seconds": 1.5}
    rest = {**new, "messages": 10, "seconds": 2.0}
    other = {"case": "2", "palace": "p", "messages": 5, "seconds": 1.0}
    assert ingest_report([line, new, rest, other]) == {"messages": 15, "seconds": 4.5}
