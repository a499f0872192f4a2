"""Corpus statistics: drawer and term counts of a palace, its trash's drawers, and the term index.

The term index has these statistics and the postings of the terms asked for lately. Both are of one
revision of the palace: every write to its postings comes with one to its drawers. An index is
immutable, so that many threads may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from isolation.raw_sql import fetch_rows
from palace.models import Palace
from palace.models.packed import unpack
from palace.recall.raw_sql import decode_array
from palace.storage.indexing.postings import EVERY, MAX_COUNT

# Approximate terms per passage, of messages long enough to be split.
TERMS_A_PASSAGE = 85


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """Statistics of the drawers that have postings, without those in the trash.

    Attributes:
        number: Number of drawers.
        total: Sum of their terms.
        trash: Keys of the drawers in the trash, ascending.
        revision: The palace's last change, 0 before the first one.
        log: Oid of the change table: each schema has its own.
    """

    number: int
    total: int
    trash: npt.NDArray[np.int64]
    revision: int = 0
    log: int = 0

    @property
    def mean_length(self) -> float:
        return max(self.total / self.number, 1.0) if self.number else 1.0

    @property
    def passages(self) -> int:
        """Approximate number of passages, an overestimate."""
        return self.number + len(self.trash) + self.total // TERMS_A_PASSAGE


# Selects one row of two columns: the revision, and the oid of the change table.
CHANGES = (
    "SELECT coalesce(max(revision), 0) AS revision, 'palace_change'::regclass::oid::bigint AS log"
    " FROM palace_change WHERE palace_id = %s"
)
# Selects one row of four columns.
COUNTS = (
    "SELECT every.number, every.total, trash.total AS in_trash, trash.keys FROM"
    " (SELECT coalesce(sum(number), 0)::bigint AS number,"
    " coalesce(sum(total), 0)::bigint AS total"
    " FROM palace_posting WHERE palace_id = %s AND term = %s) every,"
    " (SELECT coalesce(sum(least(terms, %s)), 0)::bigint AS total,"
    " substring(array_send(array_agg(id ORDER BY id)) FROM 21) AS keys FROM palace_drawer"
    " WHERE palace_id = %s AND trashed_at IS NOT NULL AND mined_at IS NOT NULL) trash"
)


def read_revision(palace: Palace) -> int:
    """The palace's last change, 0 before the first one."""
    [(revision, _)] = fetch_rows(CHANGES, [palace.pk], prepared=True)
    return int(revision)


def read_stats_of(palace: Palace) -> CorpusStats:
    statement = f"SELECT * FROM ({CHANGES}) changes CROSS JOIN ({COUNTS}) counts"  # noqa: S608 - constants.
    [row] = fetch_rows(statement, [palace.pk, *counts_parameters(palace)])
    return read_corpus_stats(iter(row))


def counts_parameters(palace: Palace) -> list[object]:
    return [palace.pk, EVERY, MAX_COUNT, palace.pk]


def read_corpus_stats(values: Iterator[Any]) -> CorpusStats:
    """Read the statistics from the next six values: those of `CHANGES`, then of `COUNTS`."""
    revision, log, number, total, in_trash, trash = islice(values, 6)
    keys = decode_array(trash, "i8")
    return CorpusStats(number - len(keys), total - in_trash, keys, revision, log)


# A term's drawers ascending, and its count and the length of each.
Posting = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.float32]]

# The most that one palace's postings take. A large palace's common terms take more, and are read
# anew for each question.
MOST_BYTES = 8 << 20
# About what a term takes besides its numbers.
TERM_BYTES = 600


@dataclass(frozen=True, slots=True)
class TermKey:
    """Identifies a term index."""

    palace_id: int


@dataclass(frozen=True, slots=True)
class TermIndex:
    """
    Attributes:
        postings: By term; None where no drawer has it.
        bytes: Approximate memory use.
    """

    corpus_stats: CorpusStats
    postings: Mapping[str, Posting | None] = field(default_factory=dict)
    bytes: int = TERM_BYTES

    def with_postings(self, postings: Mapping[str, Posting | None]) -> TermIndex:
        """The same with more postings; with none at all if these would be too many."""
        new = {term: found for term, found in postings.items() if term not in self.postings}
        taken = self.bytes + sum(map(_bytes, new.values()))
        if not new:
            return self
        if taken > MOST_BYTES:
            return TermIndex(self.corpus_stats)
        return TermIndex(self.corpus_stats, {**self.postings, **new}, taken)


def _bytes(posting: Posting | None) -> int:
    return TERM_BYTES + sum(column.nbytes for column in posting or ())


def read_postings(values: Iterator[Any]) -> dict[str, Posting]:
    """Read the postings by term from the next four values of a row: see `keyword.POSTINGS`."""
    columns = [value or () for value in islice(values, 4)]
    return {
        term: _sorted((unpack(drawers, "i8"), _floats(counts), _floats(lengths)))
        for term, drawers, counts, lengths in zip(*columns, strict=True)
    }


def _floats(data: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(data, ">i2").astype(np.float32)


def _sorted(posting: Posting) -> Posting:
    drawers, counts, lengths = posting
    if (drawers[1:] > drawers[:-1]).all():  # The usual case: postings are appended in order.
        return posting
    order = np.argsort(drawers, kind="stable")
    return drawers[order], counts[order], lengths[order]
