"""Packed postings: append, merge and clean the segments that BM25 reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection, transaction

from palace.indexing.analyzer import analyze
from palace.models import Drawer, Palace, Posting
from palace.models.locks import hold_until_commit
from palace.models.packed import pack, unpack

# The term that every drawer has: its segments give the number of drawers and their mean length.
EVERY = ""
# Four full segments fill a page of the database's.
SEGMENT_SIZE = 160
MAX_COUNT = 32767  # A smallint's largest.
# Reading many small segments costs more than one merge now and then.
SMALL_SEGMENTS = 48

Terms = Mapping[int, Counter[str]]
# Of a term: its drawers ascending, how often it is in each, how many terms each has.
Columns = Sequence[npt.NDArray[np.int64]]


def append(palace: Palace, terms: Terms) -> None:
    """Add drawers (key → its terms) that have no postings yet; call it in a transaction."""
    postings: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for drawer_id, counts in sorted(terms.items()):
        length = min(counts.total(), MAX_COUNT)
        postings[EVERY].append((drawer_id, 1, length))
        for term, count in counts.items():
            postings[term].append((drawer_id, min(count, MAX_COUNT), length))
    _write(
        palace,
        {term: list(np.array(rows, dtype=np.int64).T) for term, rows in postings.items()},
        merged=False,
    )


def remove(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Take drawers out of the postings, before they are purged; call it in a transaction."""
    rewrite_alone(palace)
    gone = np.array([drawer.pk for drawer in drawers])
    terms = {EVERY}.union(*(analyze(drawer.text) for drawer in drawers))
    holding = Posting.objects.filter(palace=palace, term__in=terms)
    segments = [
        pk
        for pk, keys in holding.values_list("pk", "drawers").iterator()
        if np.isin(gone, keys, assume_unique=True).any()
    ]
    cut = _cut("id = ANY(%s)", [segments])
    left = {term: _only(columns, ~np.isin(columns[0], gone)) for term, columns in cut.items()}
    _write(palace, left, merged=False)


def said_in(palace: Palace, terms: Collection[str], drawers: Iterable[int]) -> set[str]:
    """Those of the terms that any of the drawers has, as far as they are mined."""
    if not terms:
        return set()
    keys = np.fromiter(drawers, dtype=np.int64)
    holding = Posting.objects.filter(palace=palace, term__in=terms)
    return {
        term
        for term, held in holding.values_list("term", "drawers").iterator()
        if np.isin(keys, held).any()
    }


def needs_compaction(palace: Palace) -> bool:
    """Whether much was appended, or taken out, since the segments were last merged."""
    return Posting.objects.filter(palace=palace, term=EVERY, merged=False).count() > SMALL_SEGMENTS


def rewrite_alone(palace: Palace) -> None:
    """Rewriting is done by one transaction at a time, or it would miss what another just wrote."""
    hold_until_commit(f"rewrite postings of {palace.pk}")


@transaction.atomic
def compact(palace: Palace) -> None:
    """Merge small segments into full ones. Readers see the old or the new ones, never both."""
    rewrite_alone(palace)
    crowded = (
        "palace_id = %s AND (number < %s AND term IN (SELECT term FROM palace_posting"
        " WHERE palace_id = %s AND number < %s GROUP BY term HAVING count(*) > 1)"
        " OR term = %s AND NOT merged)"
    )
    cut = _cut(crowded, [palace.pk, SEGMENT_SIZE, palace.pk, SEGMENT_SIZE, EVERY])
    _write(palace, cut, merged=True)


def _cut(condition: str, parameters: Sequence[Any]) -> dict[str, Columns]:
    """Delete these segments, and give what they held."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH cut AS (DELETE FROM palace_posting WHERE {condition}"  # noqa: S608 - ours.
            " RETURNING term, drawers, counts, lengths)"
            " SELECT term, string_agg(drawers, ''::bytea), string_agg(counts, ''::bytea),"
            " string_agg(lengths, ''::bytea) FROM cut GROUP BY term",
            parameters,
        )
        return {
            term: _ascending([unpack(drawers, "i8"), unpack(counts, "i2"), unpack(lengths, "i2")])
            for term, drawers, counts, lengths in cursor
        }


def _ascending(columns: Columns) -> Columns:
    return _only(columns, np.argsort(columns[0], kind="stable"))


def _only(columns: Columns, places: npt.NDArray[np.generic]) -> Columns:
    return [column[places] for column in columns]


def _write(palace: Palace, postings: Mapping[str, Columns], *, merged: bool) -> None:
    statement = (
        "COPY palace_posting (palace_id, term, drawers, counts, lengths, total, merged) FROM STDIN"
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for term, columns in postings.items():
            for drawers, counts, lengths in _segments(columns):
                total = int(lengths.sum()) if term == EVERY else 0
                arrays = pack(drawers, "i8"), pack(counts, "i2"), pack(lengths, "i2")
                copy.write_row((palace.pk, term, *arrays, total, merged))


def _segments(columns: Columns) -> Iterator[Columns]:
    for first in range(0, len(columns[0]), SEGMENT_SIZE):
        yield [column[first : first + SEGMENT_SIZE] for column in columns]
