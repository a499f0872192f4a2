"""Semantic search: the cosine of the question with the passages of the palace.

For a palace of ordinary size all vectors are in memory, and every one is compared. For a large one
binary codes preselect passages, and only those are compared exactly, with a sample that estimates
the palace's mean and spread; further drawers are compared on demand. There is no index over all
palaces: it would return too few rows for a small palace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from isolation.raw_sql import fetch_rows
from palace.models import EmbeddingSpace, Palace
from palace.recall.index.corpus_stats import CorpusStats, read_stats_of
from palace.recall.index.index_loader import index_of, memory_bytes
from palace.recall.index.palace_index import (
    PalaceIndex,
    VectorQuery,
    Vectors,
    binary_codes,
    closest_by_bits,
    sample,
)
from palace.recall.index.vector_cache import inner_products
from palace.recall.raw_sql import (
    NO_KEYS,
    PassageOffsets,
    array_literal,
    decode_array,
    isin_few,
    isin_sorted,
    union,
)

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

# Least spread: a palace below it is too small or too uniform to standardise by its own spread.
MIN_SPREAD = 0.05
# A palace with more passages takes too much memory, and is searched by binary codes first.
MANY_PASSAGES = 20_000
# Above this also the binary codes stay in the database: reading them takes seconds, and copying
# them after each change takes as long as a recall may.
MOST_PASSAGES = 200_000
# About how much an index takes per message, without vectors.
MESSAGE_BYTES = 120
# With more passages the database computes the cosines of a large palace: it need not send vectors.
MOST_COMPARED_HERE = 8000
# Passages per matrix product.
BATCH = 500
# Cosines are rounded to steps of a millionth, finer than half precision is accurate.
STEPS = np.float32(2**20)

# Drawer key and passage ordinal are sent as one number, because the transfer takes longest.
_EXACT = (
    "SELECT substring(array_send(array_agg(drawer_id << 16 | ordinal)) FROM 21),"
    # The vectors are of length 1: the inner product is the cosine, and cheaper.
    " substring(array_send(array_agg((-(embedding <#> %s::halfvec))::float4)) FROM 21){unadapted}"
    " FROM palace_passage WHERE palace_id = %s AND space_id = %s AND embedding IS NOT NULL"
    " AND drawer_id = ANY(%s::bigint[])"
)
_UNADAPTED = ", substring(array_send(array_agg((-(embedding <#> %s::halfvec))::float4)) FROM 21)"


@dataclass(frozen=True, slots=True)
class Meaning:
    """Cosines of a palace's drawers with the question, by ascending drawer key.

    Attributes:
        drawers: All drawers with vectors; in a large palace only those compared.
        first: Cosine of the first passage: the opening of a long message names its subject.
        best: Cosine of the closest passage.
        best_passage: Ordinal of the closest passage.
        passages: Number of passages.
        unadapted: Like `best`, with the unadapted question; the others use the adapted one. Ask
            `compare_unadapted` for it: where vectors are in memory few drawers are compared so.
        mean: Of `best` over informative drawers; `spread` is the standard deviation.
        number: Approximate number of drawers in the palace.
        vector_query: For comparing further drawers; None if all are compared.
        index: The palace index; None if too large, or not loaded. For a large palace it contains
            binary codes only.
    """

    drawers: Ids
    first: Scores
    best: Scores
    best_passage: npt.NDArray[np.int16]
    passages: npt.NDArray[np.int16]
    unadapted: Scores
    mean: float = 0.0
    spread: float = 1.0
    number: int = 0
    vector_query: VectorQuery | None = None
    index: PalaceIndex | None = None

    @property
    def uninformative(self) -> Ids:
        """Keys of uninformative drawers, ascending; empty without an index."""
        return NO_KEYS if self.index is None else self.index.uninformative

    def at(self, drawers: Ids, column: npt.NDArray[np.generic]) -> Scores:
        """The column's values for these drawers; the palace's mean for one without a vector."""
        return look_up(self.drawers, column, drawers, missing=self.mean)

    def compare_unadapted(self, drawers: Ids) -> Scores:
        """The cosine of the unadapted question with each drawer; 0 for one without a vector.

        Args:
            drawers: Keys of compared drawers, ascending.
        """
        query = self.vector_query
        if query is None or query.index is None or len(query.vectors) == 1:
            return look_up(self.drawers, self.unadapted, drawers)
        found = _per_drawer(*_compare(query, query.vectors[1:], drawers))
        return look_up(found.drawers, found.best, drawers)

    def limited_to(self, drawers: Ids) -> Meaning:
        """The same with these drawers alone; mean and spread stay those of the palace."""
        kept = isin_sorted(self.drawers, drawers)
        return replace(
            self,
            drawers=self.drawers[kept],
            first=self.first[kept],
            best=self.best[kept],
            best_passage=self.best_passage[kept],
            passages=self.passages[kept],
            unadapted=self.unadapted[kept],
        )

    def with_all(self, drawers: Ids) -> Meaning:
        """The same with these drawers compared too."""
        more = drawers[~isin_sorted(drawers, self.drawers)]
        if self.vector_query is None or not len(more):
            return self
        found = _compare_exactly(self.vector_query, more)
        order = np.argsort(np.concatenate([self.drawers, found.drawers]), kind="stable")
        return replace(
            self,
            drawers=np.concatenate([self.drawers, found.drawers])[order],
            first=np.concatenate([self.first, found.first])[order],
            best=np.concatenate([self.best, found.best])[order],
            best_passage=np.concatenate([self.best_passage, found.best_passage])[order],
            passages=np.concatenate([self.passages, found.passages])[order],
            unadapted=np.concatenate([self.unadapted, found.unadapted])[order],
        )


class Spread(Protocol):
    """What scores are measured by: their mean and standard deviation."""

    @property
    def mean(self) -> float: ...
    @property
    def spread(self) -> float: ...


def standardised(scores: Scores, by: Spread) -> Scores:
    return np.asarray((scores - by.mean) / by.spread, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Places:
    """Where wanted keys are in a column of keys: found once, for all columns beside it.

    Attributes:
        rows: Any row where a key is missing.
        found: Whether it is there; None if the column is empty.
    """

    rows: npt.NDArray[np.intp]
    found: npt.NDArray[np.bool_] | None

    @classmethod
    def of(cls, keys: Ids, wanted: Ids) -> Places:
        """
        Args:
            keys: Ascending.
        """
        if not len(keys):
            return cls(np.zeros(len(wanted), np.intp), None)
        rows = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
        return cls(rows, keys[rows] == wanted)

    def parts(self, number: int) -> list[Places]:
        """Those of as many equally long parts of the wanted keys."""
        rows = self.rows.reshape(number, -1)
        if self.found is None:
            return [Places(each, None) for each in rows]
        found = self.found.reshape(number, -1)
        return [Places(*each) for each in zip(rows, found, strict=True)]

    def values(self, column: npt.NDArray[np.generic], *, missing: float = 0.0) -> Scores:
        """The value of each wanted key, or `missing`."""
        if self.found is None:
            return np.full(len(self.rows), missing, dtype=np.float32)
        return np.where(self.found, column[self.rows], missing).astype(np.float32, copy=False)


def look_up(
    keys: Ids, values: npt.NDArray[np.generic], wanted: Ids, *, missing: float = 0.0
) -> Scores:
    """The value of each wanted key, or `missing`; `keys` ascend."""
    return Places.of(keys, wanted).values(values, missing=missing)


NOTHING = Meaning(
    drawers=np.empty(0, np.int64),
    first=np.empty(0, np.float32),
    best=np.empty(0, np.float32),
    best_passage=np.empty(0, np.int16),
    passages=np.empty(0, np.int16),
    unadapted=np.empty(0, np.float32),
)


def by_meaning(
    palace: Palace,
    space: EmbeddingSpace,
    vector: Scores | None,
    corpus_stats: CorpusStats | None = None,
    *,
    unadapted: Scores | None = None,
) -> Meaning:
    """Compare the palace's drawers outside the trash; empty without a vector.

    Args:
        corpus_stats: Of the palace, if already read.
        unadapted: The unadapted question, if `vector` is adapted.
    """
    if vector is None:
        return NOTHING
    corpus_stats = corpus_stats or read_stats_of(palace)
    if unadapted is vector:
        unadapted = None
    if _vectors_fit(corpus_stats, space):
        return _by_index(index_of(palace, space, corpus_stats), vector, unadapted)
    halves = _halves([vector] if unadapted is None else [vector, unadapted])
    in_memory = _codes_fit(corpus_stats, space)
    vector_query = VectorQuery(
        palace.pk,
        space.pk,
        halves.astype(np.float32),
        binary_codes(halves[:1])[0],
        index_of(palace, space, corpus_stats, binary=True) if in_memory else None,
    )
    return _by_bits(vector_query, corpus_stats)


def _halves(vectors: Sequence[Scores]) -> npt.NDArray[np.float16]:
    """In half precision, like the stored passages and the database's comparison."""
    return np.stack(vectors).astype(np.float16)


def _vectors_fit(corpus_stats: CorpusStats, space: EmbeddingSpace) -> bool:
    """Whether all vectors fit in memory."""
    taken = 4 * space.dimensions * corpus_stats.passages
    return corpus_stats.passages <= MANY_PASSAGES and taken <= memory_bytes()


def _codes_fit(corpus_stats: CorpusStats, space: EmbeddingSpace) -> bool:
    taken = (space.dimensions // 8 + MESSAGE_BYTES) * corpus_stats.passages
    return corpus_stats.passages <= MOST_PASSAGES and taken <= memory_bytes()


def _by_index(index: PalaceIndex, vector: Scores, unadapted: Scores | None) -> Meaning:
    """
    Args:
        unadapted: None if equal to `vector`.
    """
    vectors = [vector] if unadapted is None else [vector, unadapted]
    found = _per_drawer(index.passage_offsets, *_cosines(index.arrays.vectors, vectors))
    mean, spread = _statistics(found.best, isin_few(found.drawers, index.uninformative))
    return replace(found, mean=mean, spread=spread, number=len(found.drawers), index=index)


def _cosines(passages: Vectors, vectors: Sequence[Scores]) -> Scores:
    """The cosine of each vector with each passage, one row per vector.

    The product is computed in batches: a whole matrix would use a thread per core, which costs
    more than it saves under concurrent requests, and a batch that fits the cache is read from
    memory once for all vectors.
    """
    queries = _halves(vectors).astype(np.float32)
    cosines = np.empty((len(vectors), len(passages)), dtype=np.float32)
    for first in range(0, len(passages), BATCH):
        part = slice(first, first + BATCH)
        cosines[:, part] = np.dot(queries, passages[part].T)
    return cosines


def _by_bits(vector_query: VectorQuery, corpus_stats: CorpusStats) -> Meaning:
    close = closest_by_bits(vector_query, without_trash=bool(len(corpus_stats.trash)))
    sampled = sample(vector_query, corpus_stats.number, corpus_stats.trash)
    found = _compare_exactly(vector_query, union(close, sampled))
    if not len(found.drawers):
        return NOTHING
    inside = isin_sorted(found.drawers, sampled)
    uninformative = NO_KEYS if vector_query.index is None else vector_query.index.uninformative
    mean, spread = _statistics(found.best[inside], isin_few(found.drawers[inside], uninformative))
    return replace(
        found,
        mean=mean,
        spread=spread,
        number=corpus_stats.number,
        vector_query=vector_query,
        index=vector_query.index,
    )


def _compare_exactly(vector_query: VectorQuery, drawers: Ids) -> Meaning:
    """Compare these drawers exactly; the caller sets mean and spread."""
    vectors = vector_query.vectors if vector_query.index is None else vector_query.vectors[:1]
    return _per_drawer(*_compare(vector_query, vectors, drawers))


def _compare(
    vector_query: VectorQuery, vectors: Vectors, drawers: Ids
) -> tuple[PassageOffsets, *tuple[Scores, ...]]:
    """Of the passages of these drawers the cosines with each vector, the same to the bit whether
    they are computed here or by the database. It does so where there are very many.
    """
    index = vector_query.index
    cache = None if index is None else index.vector_cache
    if index is not None and cache is not None:
        wanted = index.passages_of(drawers)
        if len(wanted) <= min(MOST_COMPARED_HERE, cache.number):
            passages, halves = cache.look_up(wanted, index.revision)
            return PassageOffsets(passages), *(inner_products(halves, one) for one in vectors)
    statement = _EXACT.format(unadapted=_UNADAPTED if len(vectors) > 1 else "")
    given = [vector_query.palace_id, vector_query.space_id, array_literal(drawers)]
    literals = [HalfVector(vector).to_text() for vector in vectors]
    [(sent, *columns)] = fetch_rows(statement, [*literals, *given])
    passages = decode_array(sent, "i8")
    order = np.argsort(passages, kind="stable")
    return PassageOffsets(passages[order]), *(decode_array(of, "f4")[order] for of in columns)


def _statistics(best: Scores, uninformative: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Mean and standard deviation of informative drawers; earlier questions would inflate it."""
    if uninformative.any() and not uninformative.all():
        best = best[~uninformative]
    if not len(best):
        return NOTHING.mean, NOTHING.spread
    return float(best.mean()), max(float(best.std()), MIN_SPREAD)


def _per_drawer(
    passage_offsets: PassageOffsets, cosines: Scores, unadapted: Scores | None = None
) -> Meaning:
    """
    Args:
        cosines: Of each passage; `unadapted` likewise, if it differs.
    """
    starts, counts = passage_offsets.starts, passage_offsets.counts
    if not len(starts):
        return NOTHING
    cosines = _rounded(cosines)
    unadapted = cosines if unadapted is None else _rounded(unadapted)
    first = best = cosines
    best_rows = starts
    if len(starts) < len(cosines):  # Some have several passages.
        first, best = cosines[starts], np.maximum.reduceat(cosines, starts)
        unadapted = np.maximum.reduceat(unadapted, starts)
        # The index of each drawer's best passage: the first of its rows with the best cosine.
        is_best = cosines == np.repeat(best, counts)
        rows = np.where(is_best, np.arange(len(cosines)), len(cosines))
        best_rows = np.minimum.reduceat(rows, starts)
    return Meaning(
        drawers=passage_offsets.drawers,
        first=first,
        best=best,
        best_passage=passage_offsets.ordinals[best_rows],
        passages=counts.astype(np.int16),
        unadapted=unadapted,
    )


def _rounded(cosines: Scores) -> Scores:
    """Drop the last bits, which depend on memory alignment, so that equal texts tie."""
    return np.asarray(np.rint(cosines * STEPS) / STEPS, dtype=np.float32)
