"""Ranking metrics of found keys against wanted keys. Pure."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def recall_at(found: Sequence[Key], wanted: Collection[Key], k: int) -> float:
    """Share of `wanted` among the first `k` of `found`, 0 to 1; `wanted` is not empty."""
    return len(set(found[:k]) & set(wanted)) / len(set(wanted))


def any_at(found: Sequence[Key], wanted: Collection[Key], k: int) -> float:
    """1 if any of `wanted` is among the first `k`, else 0."""
    return float(bool(set(found[:k]) & set(wanted)))


def all_at(found: Sequence[Key], wanted: Collection[Key], k: int) -> float:
    """1 if all of `wanted` are among the first `k`, else 0."""
    return float(set(wanted) <= set(found[:k]))


def reciprocal_rank(found: Sequence[Key], wanted: Collection[Key]) -> float:
    """1 if the first key found is wanted, 1/2 if only the second is, and so on; 0 if none is."""
    places = (place for place, key in enumerate(found, start=1) if key in set(wanted))
    return 1 / next(places, float("inf"))
