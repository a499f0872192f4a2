"""Keyword search: BM25 over the palace's packed postings.

Robertson, Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond (2009). The inverse
document frequency is computed per palace at query time: a name that is rare for one person is
common for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from isolation.raw_sql import fetch_rows
from palace.models import Palace
from palace.recall.index.corpus_stats import CorpusStats, Posting, read_postings, read_stats_of
from palace.recall.raw_sql import NO_KEYS, isin_few, isin_sorted, starts_new
from palace.recall.semantic import Ids, Places, Scores, look_up

K1 = 1.2
B = 0.75
# Least spread, in BM25 points; a smaller one would inflate single accidental matches.
MIN_SPREAD = 0.3


# By term: the terms, and of each its packed drawers, counts and lengths. Two aggregates, because a
# term's postings may be in several rows. Formatted with the terms, or a place for them.
POSTINGS = (
    "SELECT array_agg(term) AS terms, array_agg(drawers) AS drawers,"
    " array_agg(counts) AS counts, array_agg(lengths) AS lengths"
    " FROM (SELECT term, string_agg(drawers, ''::bytea) AS drawers,"
    " string_agg(counts, ''::bytea) AS counts, string_agg(lengths, ''::bytea) AS lengths"
    " FROM palace_posting WHERE palace_id = %s AND term = ANY({terms}) GROUP BY term) each"
)
Readings = Mapping[str, tuple[str, ...]]
Postings = Mapping[str, Posting | None]


def terms_of(readings: Readings) -> list[str]:
    """All terms that the question's words may be stored as."""
    return list(dict.fromkeys([*readings, *chain.from_iterable(readings.values())]))


def postings_of(palace: Palace, readings: Readings) -> dict[str, Posting]:
    [row] = fetch_rows(POSTINGS.format(terms="%s"), [palace.pk, terms_of(readings)], prepared=True)
    return read_postings(iter(row))


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the question: its drawers ascending, and its idf."""

    name: str
    drawers: Ids
    idf: float


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often the question's terms are in each drawer that has any of them.

    Attributes:
        drawers: Ascending.
        counts: A row for each drawer and, all 0, for those without any; a column for each term.
    """

    drawers: Ids
    counts: Scores

    def of(self, drawers: Ids) -> Scores:
        """Counts of these drawers, one row for each term."""
        places = Places.of(self.drawers, drawers)
        if places.found is None:
            return np.zeros((self.counts.shape[1], len(drawers)), dtype=np.float32)
        rows = np.where(places.found, places.rows, len(self.drawers))
        return np.ascontiguousarray(self.counts[rows].T)


@dataclass(frozen=True, slots=True)
class Words:
    """BM25 scores by ascending drawer key; drawers without any term are left out.

    Attributes:
        term_counts: Of all drawers, also where `limited_to` leaves some out.
        mean: Over all informative drawers, most of which score 0; likewise `spread`.
        mean_length: Of the palace's drawers, in terms.
        weight: Sum of the idf of all the question's terms.
        missing: The idf of a term that no drawer has.
    """

    drawers: Ids
    scores: Scores
    terms: tuple[Term, ...]
    term_counts: TermCounts
    mean: float
    spread: float
    mean_length: float
    weight: float = 1.0
    missing: float = 1.0

    def limited_to(self, drawers: Ids) -> Words:
        """The same with these drawers alone; mean, spread and idf stay those of the palace."""
        kept = isin_sorted(self.drawers, drawers)
        return replace(self, drawers=self.drawers[kept], scores=self.scores[kept])

    def at(self, drawers: Ids) -> Scores:
        return look_up(self.drawers, self.scores, drawers)

    def score_groups(self, groups: Sequence[Ids], lengths: Scores) -> tuple[Scores, Scores]:
        """BM25 and coverage (0 to 1) of groups of drawers, each group read as one text.

        Column g of the arrays is group g.

        Args:
            groups: Arrays of equal length; key 0 means no drawer.
            lengths: Of each group, in terms.
        """
        counts = np.split(self.term_counts.of(np.concatenate(groups)), len(groups), axis=1)
        return self.score_counts(counts, lengths)

    def score_counts(self, counts: Sequence[Scores], lengths: Scores) -> tuple[Scores, Scores]:
        """`score_groups`, of the terms' counts: a table for each array, a row for each term."""
        counted = counts[0]
        for further in counts[1:]:
            counted = counted + further
        idf = [term.idf for term in self.terms]
        norm = _norm(lengths / self.mean_length)
        points = np.array(idf, dtype=np.float32)[:, None] * _saturate(counted, norm)
        covered = np.zeros(len(lengths), dtype=np.float32)
        for weight, has_it in zip(idf, counted > 0, strict=True):
            covered += weight * has_it
        return np.add.reduce(points), np.asarray(covered / self.weight, dtype=np.float32)


NO_COUNTS = TermCounts(NO_KEYS, np.zeros((1, 0), np.float32))
NOTHING = Words(NO_KEYS, np.empty(0, np.float32), (), NO_COUNTS, 0.0, 1.0, 1.0)


def by_words(
    palace: Palace,
    terms: tuple[str, ...],
    corpus_stats: CorpusStats | None = None,
    uninformative: Ids = NO_KEYS,
    *,
    readings: Readings | None = None,
    postings: Postings | None = None,
) -> Words:
    """Score the drawers outside the trash that contain any of the terms.

    Args:
        corpus_stats: Of the palace, if already read; `postings` likewise.
        uninformative: Keys of uninformative drawers, ascending. They are scored like the others,
            but idf, mean and spread exclude them.
        readings: The other terms that a term may be stored as; it is found in the drawers of all.
    """
    corpus_stats = corpus_stats or read_stats_of(palace)
    if not corpus_stats.number or not terms:
        return NOTHING
    if corpus_stats.number <= len(uninformative):
        uninformative = NO_KEYS
    readings = readings or dict.fromkeys(terms, ())
    read: Postings = postings_of(palace, readings) if postings is None else postings
    found = _by_term(read, terms, readings, corpus_stats.trash)
    return _scored(found, len(terms), corpus_stats, uninformative) if found else NOTHING


def _scored(
    postings: Mapping[str, Posting], asked: int, corpus_stats: CorpusStats, uninformative: Ids
) -> Words:
    """
    Args:
        postings: Of the terms that any drawer has.
        asked: Number of the question's terms.
    """
    number = corpus_stats.number - len(uninformative)
    mean_length = corpus_stats.mean_length
    term_counts, order, starts = _merge(list(postings.values()))
    informative = ~isin_few(term_counts.drawers, uninformative)
    excluded = np.count_nonzero(term_counts.counts[:-1][~informative], axis=0).tolist()
    terms = tuple(
        Term(name, drawers, _idf(len(drawers) - few, number))
        for (name, (drawers, _, _)), few in zip(postings.items(), excluded, strict=True)
    )
    shares = [
        _saturate(counts, _norm(lengths / mean_length)) * term.idf
        for term, (_, counts, lengths) in zip(terms, postings.values(), strict=True)
    ]
    scores: Scores = np.add.reduceat(np.concatenate(shares)[order], starts)
    missing = _idf(0, number)
    whole = sum(term.idf for term in terms) + (asked - len(terms)) * missing
    mean, spread = _statistics(scores[informative], number)
    return Words(
        drawers=term_counts.drawers,
        scores=scores,
        terms=terms,
        term_counts=term_counts,
        mean=mean,
        spread=spread,
        mean_length=mean_length,
        weight=float(whole),
        missing=missing,
    )


def _statistics(scores: Scores, number: int) -> tuple[float, float]:
    """Mean and spread over `number` drawers; drawers without a score count as 0."""
    mean = float(scores.sum()) / number
    variance = float((scores**2).sum()) / number - mean**2
    return mean, max(variance, MIN_SPREAD**2) ** 0.5


def _merge(postings: list[Posting]) -> tuple[TermCounts, Ids, Ids]:
    """The terms' counts by drawer, the order that sorts all keys, and where each drawer begins.

    The parts are sorted, which makes this many times faster than `np.unique`.
    """
    keys = np.concatenate([drawers for drawers, _, _ in postings])
    order = keys.argsort(kind="stable")
    ascending = keys[order]
    begins = starts_new(ascending)
    starts = begins.nonzero()[0]
    rows = np.empty(len(keys), np.intp)
    rows[order] = begins.cumsum() - 1
    columns = np.repeat(np.arange(len(postings)), [len(drawers) for drawers, _, _ in postings])
    counts = np.zeros((len(starts) + 1, len(postings)), dtype=np.float32)
    counts[rows, columns] = np.concatenate([counts for _, counts, _ in postings])
    return TermCounts(ascending[starts], counts), order, starts


def _norm(relative_length: Scores) -> Scores:
    return np.asarray(K1 * (1 - B + B * relative_length))


def _saturate(counts: Scores, norm: Scores) -> Scores:
    return np.asarray(counts * (K1 + 1) / (counts + norm), dtype=np.float32)


def _idf(frequency: int, number: int) -> float:
    return float(np.log(1 + (number - frequency + 0.5) / (frequency + 0.5)))


def _by_term(
    postings: Postings, terms: tuple[str, ...], readings: Readings, trash: Ids
) -> dict[str, Posting]:
    """By term: its drawers outside the trash, ascending, with counts and lengths."""
    found = {}
    for term in terms:
        names = term, *readings.get(term, ())
        read = [posting for name in names if (posting := postings.get(name)) is not None]
        if read:
            found[term] = _without(trash, _united(read) if len(read) > 1 else read[0])
    return {term: kept for term, kept in found.items() if len(kept[0])}


def _united(postings: list[Posting]) -> Posting:
    """The postings of several terms as those of one: a drawer's counts are added."""
    drawers, counts, lengths = (np.concatenate(parts) for parts in zip(*postings, strict=True))
    keys, first, place = np.unique(drawers, return_index=True, return_inverse=True)
    summed = np.bincount(place, weights=counts).astype(np.float32)
    return keys, summed, lengths[first]


def _without(trash: Ids, posting: Posting) -> Posting:
    if not len(trash):
        return posting
    ids, counts, lengths = posting
    kept = ~isin_sorted(ids, trash)
    return ids[kept], counts[kept], lengths[kept]
