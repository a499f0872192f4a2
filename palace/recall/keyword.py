"""Words: BM25 over the palace's own packed postings.

Robertson, Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond (2009). The inverse
document frequency is this palace's, exact at query time: a name that is rare for one person is
everyday for another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from palace.models import Palace
from palace.models.packed import unpack
from palace.recall.index.corpus_stats import CorpusStats, read_stats_of
from palace.recall.raw_sql import NO_KEYS, fetch_rows, marked
from palace.recall.semantic import Ids, Scores, look_up

K1 = 1.2
B = 0.75
# Below this spread, in BM25 points, standardising would blow up single accidental hits.
MIN_SPREAD = 0.3


@dataclass(frozen=True, slots=True)
class Term:
    """One of the question's terms: its drawers ascending, how often it is in each, and its idf."""

    name: str
    drawers: Ids
    counts: npt.NDArray[np.float32]
    idf: float


@dataclass(frozen=True, slots=True)
class Words:
    """BM25 of the palace's drawers, by ascending drawer key; those without any term left out.

    Attributes:
        mean: Over all drawers that tell something, most of which score 0; likewise `spread`.
        coverage: The largest share of the question, 0 to 1, that the terms of one of those make up;
            a rare term makes up more than an everyday one.
        mean_length: Of the palace's drawers, in terms.
        weight: Of all the question's terms, the sum of their idf.
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

    def at(self, drawers: Ids) -> Scores:
        return look_up(self.drawers, self.scores, drawers)

    def of_groups(self, groups: list[Ids], lengths: Scores) -> tuple[Scores, Scores]:
        """Of drawers read as one text BM25, and the share of the question, 0 to 1, that it holds.

        Column g of the groups' arrays makes text g.

        Args:
            groups: Arrays of equal length; a key of 0 stands for no drawer.
            lengths: Of each text, in terms.
        """
        keys, relative = np.concatenate(groups), lengths / self.mean_length
        scores, covered = np.zeros((2, len(lengths)), dtype=np.float32)
        for term in self.terms:
            counts = look_up(term.drawers, term.counts, keys).reshape(len(groups), -1).sum(axis=0)
            scores += term.idf * _saturated(counts, relative)
            covered += term.idf * (counts > 0)
        return scores, np.asarray(covered / self.weight, dtype=np.float32)


NOTHING = Words(np.empty(0, np.int64), np.empty(0, np.float32), (), 0.0, 1.0, 1.0, 0.0)


def by_words(
    palace: Palace,
    terms: tuple[str, ...],
    corpus_stats: CorpusStats | None = None,
    silent: Ids = NO_KEYS,
) -> Words:
    """Score the kept drawers that hold any of the terms, as if there were no others.

    Args:
        corpus_stats: Of the palace, where it was just taken.
        silent: Keys of drawers that tell nothing, ascending. They are scored like the others, but
            how rare a word is, and how far a score stands out, is as if they were not there.
    """
    corpus_stats = corpus_stats or read_stats_of(palace)
    number, mean_length = corpus_stats.number, corpus_stats.mean_length
    if not number or not terms:
        return NOTHING
    if number <= len(silent):
        silent = NO_KEYS
    number -= len(silent)
    postings = _postings(palace, terms, corpus_stats.trash)
    if not postings:
        return NOTHING
    parts = [
        (ids, counts, _saturated(counts, lengths / mean_length), _idf_of(ids, number, silent))
        for ids, counts, lengths in postings.values()
    ]
    keys, order, starts = _merged([part[0] for part in parts])
    points = np.concatenate([part[2] * part[3] for part in parts])[order]
    weights = np.concatenate([np.full(len(part[0]), part[3]) for part in parts])[order]
    scores = np.add.reduceat(points, starts).astype(np.float32)
    telling = ~marked(keys[starts], silent)
    covered = np.add.reduceat(weights, starts)[telling].max(initial=0)
    missing = _idf(0, number)
    whole = sum(part[3] for part in parts) + (len(terms) - len(parts)) * missing
    mean, spread = _statistics(scores[telling], number)
    return Words(
        drawers=keys[starts],
        scores=scores,
        terms=tuple(
            Term(name, ids, counts, idf)
            for name, (ids, counts, _, idf) in zip(postings, parts, strict=True)
        ),
        mean=mean,
        spread=spread,
        mean_length=mean_length,
        coverage=float(covered / whole),
        weight=float(whole),
        missing=missing,
    )


def _statistics(scores: Scores, number: int) -> tuple[float, float]:
    """Mean and spread over `number` drawers, of which those without a score have 0."""
    mean = float(scores.sum()) / number
    variance = float((scores**2).sum()) / number - mean**2
    return mean, max(variance, MIN_SPREAD**2) ** 0.5


def _idf_of(drawers: Ids, number: int, silent: Ids) -> float:
    few = np.count_nonzero(marked(drawers, silent)) if len(silent) else 0
    return _idf(len(drawers) - int(few), number)


def _merged(parts: list[Ids]) -> tuple[Ids, Ids, Ids]:
    """All keys ascending, the order that makes them so, and where each key is first.

    Each part ascends already: this is many times faster than `np.unique`, which does not know.
    """
    keys = np.concatenate(parts)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return keys, order, np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])


def _saturated(counts: Scores, relative_length: Scores) -> Scores:
    norm = K1 * (1 - B + B * relative_length)
    return np.asarray(counts * (K1 + 1) / (counts + norm), dtype=np.float32)


def _idf(frequency: int, number: int) -> float:
    return float(np.log(1 + (number - frequency + 0.5) / (frequency + 0.5)))


def _postings(
    palace: Palace, terms: tuple[str, ...], trash: Ids
) -> dict[str, tuple[Ids, Scores, Scores]]:
    """By each term that a kept drawer has: those drawers ascending, counts, lengths."""
    rows = fetch_rows(
        "SELECT term, string_agg(drawers, ''::bytea), string_agg(counts, ''::bytea),"
        " string_agg(lengths, ''::bytea) FROM palace_posting"
        " WHERE palace_id = %s AND term = ANY(%s) GROUP BY term",
        [palace.pk, list(terms)],
    )
    columns = {
        term: (unpack(drawers, "i8"), _floats(counts), _floats(lengths))
        for term, drawers, counts, lengths in rows
    }
    found = {term: _without(trash, _sorted(columns[term])) for term in terms if term in columns}
    return {term: kept for term, kept in found.items() if len(kept[0])}


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
    if (drawers[1:] > drawers[:-1]).all():  # As they mostly are: they were appended so.
        return columns
    order = np.argsort(drawers, kind="stable")
    return drawers[order], counts[order], lengths[order]
