"""Keyword search: BM25 over the palace's packed postings.

Robertson, Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond (2009). The inverse
document frequency is computed per palace at query time: a name that is rare for one person is
common for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from palace.models import Palace
from palace.models.packed import unpack
from palace.recall.index.corpus_stats import CorpusStats, read_stats_of
from palace.recall.raw_sql import NO_KEYS, fetch_rows, isin_few, isin_sorted
from palace.recall.semantic import Ids, Scores, look_up

K1 = 1.2
B = 0.75
# Least spread, in BM25 points; a smaller one would inflate single accidental matches.
MIN_SPREAD = 0.3


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the question: its drawers ascending, its frequency in each, and its idf."""

    name: str
    drawers: Ids
    counts: npt.NDArray[np.float32]
    idf: float


@dataclass(frozen=True, slots=True)
class Words:
    """BM25 scores by ascending drawer key; drawers without any term are left out.

    Attributes:
        mean: Over all informative drawers, most of which score 0; likewise `spread`.
        coverage: The largest share of the question, 0 to 1, that one informative drawer covers;
            terms count by idf.
        mean_length: Of the palace's drawers, in terms.
        weight: Sum of the idf of all the question's terms.
        missing: The idf of a term that no drawer has.
    """

    drawers: Ids
    scores: Scores
    terms: tuple[Term, ...]
    mean: float
    spread: float
    mean_length: float
    coverage: float
    weight: float = 1.0
    missing: float = 1.0

    def standardised(self, scores: Scores) -> Scores:
        return np.asarray((scores - self.mean) / self.spread, dtype=np.float32)

    def limited_to(self, drawers: Ids) -> Words:
        """The same with these drawers alone; mean, spread and idf stay those of the palace."""
        kept = isin_sorted(self.drawers, drawers)
        return replace(self, drawers=self.drawers[kept], scores=self.scores[kept])

    def at(self, drawers: Ids) -> Scores:
        return look_up(self.drawers, self.scores, drawers)

    def score_groups(self, groups: list[Ids], lengths: Scores) -> tuple[Scores, Scores]:
        """BM25 and coverage (0 to 1) of groups of drawers, each group read as one text.

        Column g of the arrays is group g.

        Args:
            groups: Arrays of equal length; key 0 means no drawer.
            lengths: Of each group, in terms.
        """
        keys, relative = np.concatenate(groups), lengths / self.mean_length
        scores, covered = np.zeros((2, len(lengths)), dtype=np.float32)
        for term in self.terms:
            counts = look_up(term.drawers, term.counts, keys).reshape(len(groups), -1).sum(axis=0)
            scores += term.idf * _saturate(counts, relative)
            covered += term.idf * (counts > 0)
        return scores, np.asarray(covered / self.weight, dtype=np.float32)


NOTHING = Words(np.empty(0, np.int64), np.empty(0, np.float32), (), 0.0, 1.0, 1.0, 0.0)


def by_words(
    palace: Palace,
    terms: tuple[str, ...],
    corpus_stats: CorpusStats | None = None,
    uninformative: Ids = NO_KEYS,
    *,
    readings: Mapping[str, tuple[str, ...]] | None = None,
) -> Words:
    """Score the drawers outside the trash that contain any of the terms.

    Args:
        corpus_stats: Of the palace, if already read.
        uninformative: Keys of uninformative drawers, ascending. They are scored like the others,
            but idf, mean and spread exclude them.
        readings: The other terms that a term may be stored as; it is found in the drawers of all.
    """
    corpus_stats = corpus_stats or read_stats_of(palace)
    number, mean_length = corpus_stats.number, corpus_stats.mean_length
    if not number or not terms:
        return NOTHING
    if number <= len(uninformative):
        uninformative = NO_KEYS
    number -= len(uninformative)
    postings = _postings(palace, terms, readings or {}, corpus_stats.trash)
    if not postings:
        return NOTHING
    found = tuple(
        Term(name, ids, counts, _idf_of(ids, number, uninformative))
        for name, (ids, counts, _) in postings.items()
    )
    lengths = [column / mean_length for _, _, column in postings.values()]
    drawers, scores, covered = _scored(found, lengths)
    informative = ~isin_few(drawers, uninformative)
    missing = _idf(0, number)
    whole = sum(term.idf for term in found) + (len(terms) - len(found)) * missing
    mean, spread = _statistics(scores[informative], number)
    return Words(
        drawers=drawers,
        scores=scores,
        terms=found,
        mean=mean,
        spread=spread,
        mean_length=mean_length,
        coverage=float(covered[informative].max(initial=0) / whole),
        weight=float(whole),
        missing=missing,
    )


def _scored(
    terms: Sequence[Term], lengths: Sequence[Scores]
) -> tuple[Ids, Scores, npt.NDArray[np.float64]]:
    """The drawers that contain any of the terms, their BM25, and the idf of the terms in each.

    Args:
        lengths: For each term, of its drawers, in mean lengths.
    """
    keys, order, starts = _merge([term.drawers for term in terms])
    shares = [
        _saturate(term.counts, column) * term.idf
        for term, column in zip(terms, lengths, strict=True)
    ]
    covered = [np.full(len(term.drawers), term.idf) for term in terms]
    scores = _sum_by_drawer(shares, order, starts).astype(np.float32)
    return keys[starts], scores, _sum_by_drawer(covered, order, starts)


def _sum_by_drawer(parts: list[npt.NDArray[Any]], order: Ids, starts: Ids) -> npt.NDArray[Any]:
    """The sum of each drawer's values.

    Args:
        parts: One value per drawer of each term; `order` and `starts` come from `_merge`.
    """
    return np.asarray(np.add.reduceat(np.concatenate(parts)[order], starts))


def _statistics(scores: Scores, number: int) -> tuple[float, float]:
    """Mean and spread over `number` drawers; drawers without a score count as 0."""
    mean = float(scores.sum()) / number
    variance = float((scores**2).sum()) / number - mean**2
    return mean, max(variance, MIN_SPREAD**2) ** 0.5


def _idf_of(drawers: Ids, number: int, uninformative: Ids) -> float:
    few = np.count_nonzero(isin_few(drawers, uninformative)) if len(uninformative) else 0
    return _idf(len(drawers) - int(few), number)


def _merge(parts: list[Ids]) -> tuple[Ids, Ids, Ids]:
    """All keys ascending, the sort order, and the first index of each key.

    The parts are sorted, which makes this many times faster than `np.unique`.
    """
    keys = np.concatenate(parts)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return keys, order, np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])


def _saturate(counts: Scores, relative_length: Scores) -> Scores:
    norm = K1 * (1 - B + B * relative_length)
    return np.asarray(counts * (K1 + 1) / (counts + norm), dtype=np.float32)


def _idf(frequency: int, number: int) -> float:
    return float(np.log(1 + (number - frequency + 0.5) / (frequency + 0.5)))


def _postings(
    palace: Palace,
    terms: tuple[str, ...],
    readings: Mapping[str, tuple[str, ...]],
    trash: Ids,
) -> dict[str, tuple[Ids, Scores, Scores]]:
    """By term: its drawers outside the trash, ascending, with counts and lengths."""
    rows = fetch_rows(
        "SELECT term, string_agg(drawers, ''::bytea), string_agg(counts, ''::bytea),"
        " string_agg(lengths, ''::bytea) FROM palace_posting"
        " WHERE palace_id = %s AND term = ANY(%s) GROUP BY term",
        [palace.pk, [*terms, *chain.from_iterable(readings.values())]],
        prepared=True,
    )
    columns = {
        term: (unpack(drawers, "i8"), _floats(counts), _floats(lengths))
        for term, drawers, counts, lengths in rows
    }
    found = {}
    for term in terms:
        read = [columns[name] for name in (term, *readings.get(term, ())) if name in columns]
        if read:
            found[term] = _without(trash, _united(read) if len(read) > 1 else _sorted(read[0]))
    return {term: kept for term, kept in found.items() if len(kept[0])}


def _united(columns: list[tuple[Ids, Scores, Scores]]) -> tuple[Ids, Scores, Scores]:
    """The postings of several terms as those of one: a drawer's counts are added."""
    drawers, counts, lengths = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    keys, first, place = np.unique(drawers, return_index=True, return_inverse=True)
    summed = np.bincount(place, weights=counts).astype(np.float32)
    return keys, summed, lengths[first]


def _without(trash: Ids, columns: tuple[Ids, Scores, Scores]) -> tuple[Ids, Scores, Scores]:
    if not len(trash):
        return columns
    ids, counts, lengths = columns
    kept = ~np.isin(ids, trash)
    return ids[kept], counts[kept], lengths[kept]


def _floats(data: bytes) -> Scores:
    return unpack(data, "i2").astype(np.float32)


def _sorted(columns: tuple[Ids, Scores, Scores]) -> tuple[Ids, Scores, Scores]:
    drawers, counts, lengths = columns
    if (drawers[1:] > drawers[:-1]).all():  # The usual case: postings are appended in order.
        return columns
    order = np.argsort(drawers, kind="stable")
    return drawers[order], counts[order], lengths[order]
