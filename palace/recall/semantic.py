"""Meaning: the cosine of the question with the passages of the palace.

Of a palace of ordinary size all vectors are in memory, and every one is compared. Of a large one
the signs of the vectors say which passages may be close, and only those are compared exactly,
beside a sample that gives the palace's mean and spread; what else is looked at later is compared
then. No index over all palaces is used: it would return too few rows for a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from palace.models import EmbeddingSpace, Palace
from palace.recall.index.binary_quantization import Asked, closest_by_bits, sample
from palace.recall.index.corpus_stats import CorpusStats, read_stats_of
from palace.recall.index.index_cache import index_of, memory_bytes
from palace.recall.index.palace_index import PalaceIndex, Stretches, Vectors, binary_codes
from palace.recall.raw_sql import (
    NO_KEYS,
    among,
    distinct,
    fetch_rows,
    keys_literal,
    marked,
    numbers,
)

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

# Below this spread a palace is too small, or too much of one kind, to standardise by its own.
MIN_SPREAD = 0.05
# With more passages than these a palace takes too much memory, and the bits are looked at first.
MANY_PASSAGES = 20_000
# With more than these also the bits are left to the database: to read them takes seconds, and to
# copy them after each change as long as a recall may.
MOST_PASSAGES = 200_000
# What an index keeps of each message takes about so much.
MESSAGE_BYTES = 120
# So many passages are compared at a time.
PART = 500
# A cosine is known in steps of a millionth; of halves of precision it means nothing below.
STEPS = np.float32(2**20)

# A drawer's key and its passage's ordinal are one number: sending takes longest.
_EXACT = (
    "SELECT substring(array_send(array_agg(drawer_id << 16 | ordinal)) FROM 21),"
    # The vectors are of length 1: the inner product is the cosine, and cheaper.
    " substring(array_send(array_agg((-(embedding <#> %s::halfvec))::float4)) FROM 21){as_asked}"
    " FROM palace_passage WHERE palace_id = %s AND space_id = %s AND embedding IS NOT NULL"
    " AND drawer_id = ANY(%s::bigint[])"
)
_AS_ASKED = ", substring(array_send(array_agg((-(embedding <#> %s::halfvec))::float4)) FROM 21)"


@dataclass(frozen=True, slots=True)
class Meaning:
    """Cosines of a palace's drawers with the question, by ascending drawer key.

    Attributes:
        drawers: All that have vectors; of a large palace those that may matter.
        first: Of each drawer's first passage: what a long message opens with tells its subject.
        best: Of its closest passage.
        best_passage: That passage's ordinal.
        passages: How many passages it has.
        as_asked: Like `best`, with the question's own vector; the rest is with where its answers
            are.
        mean: Of `best` over what tells something; likewise `spread`, the standard deviation.
        number: How many drawers the palace has, about.
        asked: Where the others are; None where all are here.
        index: The palace in memory; None where it is too large, or was not looked at. Of a large
            one it has the binary codes only.
    """

    drawers: Ids
    first: Scores
    best: Scores
    best_passage: npt.NDArray[np.int16]
    passages: npt.NDArray[np.int16]
    as_asked: Scores
    mean: float
    spread: float
    number: int = 0
    asked: Asked | None = None
    index: PalaceIndex | None = None

    @property
    def silent(self) -> Ids:
        """Keys of drawers that tell nothing, ascending; none where the palace is not in memory."""
        return NO_KEYS if self.index is None else self.index.silent

    def standardised(self, scores: Scores) -> Scores:
        return np.asarray((scores - self.mean) / self.spread, dtype=np.float32)

    def at(self, drawers: Ids, column: npt.NDArray[np.generic]) -> Scores:
        """The column's values for these drawers; the palace's mean where one has no vector."""
        return look_up(self.drawers, column, drawers, missing=self.mean)

    def with_all(self, drawers: Ids) -> Meaning:
        """With these drawers compared too, if they were not."""
        more = drawers[~among(drawers, self.drawers)]
        if self.asked is None or not len(more):
            return self
        found = _exactly(self.asked, more)
        order = np.argsort(np.concatenate([self.drawers, found.drawers]), kind="stable")
        return replace(
            self,
            drawers=np.concatenate([self.drawers, found.drawers])[order],
            first=np.concatenate([self.first, found.first])[order],
            best=np.concatenate([self.best, found.best])[order],
            best_passage=np.concatenate([self.best_passage, found.best_passage])[order],
            passages=np.concatenate([self.passages, found.passages])[order],
            as_asked=np.concatenate([self.as_asked, found.as_asked])[order],
        )


def look_up(
    keys: Ids, values: npt.NDArray[np.generic], wanted: Ids, *, missing: float = 0.0
) -> Scores:
    """`values` at `wanted`, where `keys` ascend; `missing` for those not among the keys."""
    if not len(keys):
        return np.full(len(wanted), missing, dtype=np.float32)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = np.where(keys[places] == wanted, values[places], missing)
    return found.astype(np.float32)


NOTHING = Meaning(
    drawers=np.empty(0, np.int64),
    first=np.empty(0, np.float32),
    best=np.empty(0, np.float32),
    best_passage=np.empty(0, np.int16),
    passages=np.empty(0, np.int16),
    as_asked=np.empty(0, np.float32),
    mean=0.0,
    spread=1.0,
)


def by_meaning(
    palace: Palace,
    space: EmbeddingSpace,
    vector: Scores | None,
    corpus_stats: CorpusStats | None = None,
    *,
    as_asked: Scores | None = None,
) -> Meaning:
    """Score the kept drawers of the palace; nothing where there is no vector to compare with.

    Args:
        as_asked: The question's own vector, where `vector` is another.
        corpus_stats: Of the palace, where it was just taken.
    """
    if vector is None:
        return NOTHING
    corpus_stats = corpus_stats or read_stats_of(palace)
    if as_asked is vector:
        as_asked = None
    if _are_few(corpus_stats, space):
        return _by_index(index_of(palace, space, corpus_stats), vector, as_asked)
    in_memory = _codes_fit(corpus_stats, space)
    asked = Asked(
        palace.pk,
        space.pk,
        HalfVector(vector).to_text(),
        "" if as_asked is None else HalfVector(as_asked).to_text(),
        binary_codes(vector.astype(np.float16)[None])[0],
        index_of(palace, space, corpus_stats, binary=True) if in_memory else None,
    )
    return _by_bits(asked, corpus_stats)


def _are_few(corpus_stats: CorpusStats, space: EmbeddingSpace) -> bool:
    """Whether all vectors may be in memory."""
    taken = 4 * space.dimensions * corpus_stats.passages
    return corpus_stats.passages <= MANY_PASSAGES and taken <= memory_bytes()


def _codes_fit(corpus_stats: CorpusStats, space: EmbeddingSpace) -> bool:
    taken = (space.dimensions // 8 + MESSAGE_BYTES) * corpus_stats.passages
    return corpus_stats.passages <= MOST_PASSAGES and taken <= memory_bytes()


def _by_index(index: PalaceIndex, vector: Scores, as_asked: Scores | None) -> Meaning:
    """
    Args:
        as_asked: None where it is `vector`.
    """
    vectors = [vector] if as_asked is None else [vector, as_asked]
    found = _per_drawer(index.stretches, *_compared(index.arrays.vectors, vectors))
    mean, spread = _statistics(found.best, marked(found.drawers, index.silent))
    return replace(found, mean=mean, spread=spread, number=len(found.drawers), index=index)


def _compared(passages: Vectors, vectors: Sequence[Scores]) -> Scores:
    """The cosine of each of the vectors with each passage, one row a vector.

    A whole matrix would be shared out to as many threads as there are cores: that costs more than
    it saves where others ask too, and a part that fits the cache is read from memory once for all
    the vectors.
    """
    # As the passages are kept, and as the database would compare with them.
    asked = np.stack(vectors, axis=1).astype(np.float16).astype(np.float32)
    cosines = np.empty((len(passages), len(vectors)), dtype=np.float32)
    for first in range(0, len(passages), PART):
        part = slice(first, first + PART)
        np.dot(passages[part], asked, out=cosines[part])
    return np.ascontiguousarray(cosines.T)


def _by_bits(asked: Asked, corpus_stats: CorpusStats) -> Meaning:
    close = closest_by_bits(asked, without_trash=bool(len(corpus_stats.trash)))
    sampled = sample(asked, corpus_stats.number, corpus_stats.trash)
    found = _exactly(asked, distinct(close, sampled))
    if not len(found.drawers):
        return NOTHING
    inside = among(found.drawers, sampled)
    silent = NO_KEYS if asked.index is None else asked.index.silent
    mean, spread = _statistics(found.best[inside], marked(found.drawers[inside], silent))
    return replace(
        found, mean=mean, spread=spread, number=corpus_stats.number, asked=asked, index=asked.index
    )


def _exactly(asked: Asked, drawers: Ids) -> Meaning:
    """Of these drawers; the mean and spread are left to whoever knows them."""
    vectors = [asked.vector, asked.as_asked] if asked.as_asked else [asked.vector]
    statement = _EXACT.format(as_asked=_AS_ASKED if asked.as_asked else "")
    [(sent, *columns)] = fetch_rows(
        statement, [*vectors, asked.palace_id, asked.space_id, keys_literal(drawers)]
    )
    passages = numbers(sent, "i8")
    order = np.argsort(passages, kind="stable")
    cosines = [numbers(column, "f4")[order] for column in columns]
    return _per_drawer(Stretches(passages[order]), *cosines)


def _statistics(best: Scores, silent: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Mean and standard deviation of all but the silent: many close ones would widen it."""
    if silent.any() and not silent.all():
        best = best[~silent]
    if not len(best):
        return NOTHING.mean, NOTHING.spread
    return float(best.mean()), max(float(best.std()), MIN_SPREAD)


def _per_drawer(stretches: Stretches, cosines: Scores, as_asked: Scores | None = None) -> Meaning:
    """
    Args:
        cosines: Of each passage; likewise `as_asked`, where that differs.
    """
    starts, counts = stretches.starts, stretches.counts
    if not len(starts):
        return NOTHING
    cosines = _steady(cosines)
    best = np.maximum.reduceat(cosines, starts)
    # The place of each drawer's best passage: the first row of the drawer that reaches its best.
    is_best = cosines == np.repeat(best, counts)
    rows = np.where(is_best, np.arange(len(cosines)), len(cosines))
    best_rows = np.minimum.reduceat(rows, starts)
    return replace(
        NOTHING,
        drawers=stretches.drawers,
        first=cosines[starts],
        best=best,
        best_passage=stretches.ordinals[best_rows],
        passages=counts.astype(np.int16),
        as_asked=best if as_asked is None else np.maximum.reduceat(_steady(as_asked), starts),
    )


def _steady(cosines: Scores) -> Scores:
    """Without the last bits, which depend on where a vector lies: the same text is as close."""
    return np.asarray(np.rint(cosines * STEPS) / STEPS, dtype=np.float32)
