from __future__ import annotations

import pytest

from bench.metrics import all_at, any_at, interval, mean, percentile, recall_at

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
