"""How good an order is: by hand, and by the limits of each measure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace.recall.evaluation.measures import all_at, any_at, recall_at, reciprocal_rank


@pytest.mark.parametrize(
    ("found", "wanted", "any_2", "all_2", "recall_2", "rank"),
    [
        ("abc", "a", 1, 1, 1, 1),
        ("abc", "b", 1, 1, 1, 1 / 2),
        ("abc", "c", 0, 0, 0, 1 / 3),
        ("abc", "ac", 1, 0, 1 / 2, 1),
        ("abc", "ab", 1, 1, 1, 1),
        ("abc", "x", 0, 0, 0, 0),
        ("", "x", 0, 0, 0, 0),
    ],
)
def test_by_hand(found, wanted, any_2, all_2, recall_2, rank):
    assert any_at(found, wanted, 2) == any_2
    assert all_at(found, wanted, 2) == all_2
    assert recall_at(found, wanted, 2) == recall_2
    assert reciprocal_rank(found, wanted) == rank


@given(
    found=st.lists(st.integers(0, 30), unique=True),
    wanted=st.sets(st.integers(0, 30), min_size=1),
    k=st.integers(1, 30),
)
def test_all_implies_any_and_the_share_is_between(found, wanted, k):
    assert all_at(found, wanted, k) <= recall_at(found, wanted, k) <= any_at(found, wanted, k)
    assert recall_at(found, wanted, k) <= recall_at(found, wanted, k + 1)
    assert (reciprocal_rank(found, wanted) >= 1 / k) == bool(any_at(found, wanted, k))
