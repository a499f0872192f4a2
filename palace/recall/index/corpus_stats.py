"""Corpus statistics: drawer and term counts of a palace, and the drawers in its trash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from palace.models import Palace
from palace.recall.raw_sql import decode_array, fetch_rows
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
