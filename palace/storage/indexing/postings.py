"""Packed postings: append, merge and clean the segments that BM25 reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from celery import shared_task
from django.db import connection, transaction

from language.analyzer import analyze
from palace.models import Drawer, Palace, Posting, in_palace
from palace.models.concurrency import (
    enqueue_once,
    hold_until_commit,
    leave_queue,
    queue_may_be_away,
)
from palace.models.packed import Kind, pack, unpack
from palace.storage.bulk_insert import insert_packed, packed_numbers, packed_values

# A term that every drawer has: its segments contain the number of drawers and their lengths.
EVERY = ""
# Four full segments fill a database page.
SEGMENT_SIZE = 160
MAX_COUNT = 32767  # A smallint's largest.
# Compact above this: reading many small segments costs more than an occasional merge.
SMALL_SEGMENTS = 48

Terms = Mapping[int, Counter[str]]
# A term's drawers, ascending, with its frequency in each and the length of each.
Columns = Sequence[npt.NDArray[np.int64]]


def append(palace: Palace, terms: Terms) -> None:
    """Add drawers (key → its terms) that have no postings yet; call it in a transaction."""
    drawers = sorted(terms)
    counts_of: list[Mapping[str, int]] = [{EVERY: 1, **terms[drawer]} for drawer in drawers]
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(term, len(numbers)) for counts in counts_of for term in counts]
    order = np.argsort(places, kind="stable")
    sizes = [len(counts) for counts in counts_of]
    columns = (
        np.repeat(np.array(drawers, np.int64), sizes),
        np.minimum([count for counts in counts_of for count in counts.values()], MAX_COUNT),
        np.repeat([min(terms[drawer].total(), MAX_COUNT) for drawer in drawers], sizes),
    )
    having = dict(zip(numbers, np.bincount(places, minlength=len(numbers)).tolist(), strict=True))
    _write(palace, having, _take(columns, order), merged=False)


def remove(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Remove drawers from the postings before they are purged; call it in a transaction."""
    lock_rewrites(palace)
    removed = np.array([drawer.pk for drawer in drawers])
    terms = {EVERY}.union(*(analyze(drawer.text) for drawer in drawers))
    with_terms = Posting.objects.filter(palace=palace, term__in=terms)
    segments = [
        pk
        for pk, keys in with_terms.values_list("pk", "drawers").iterator()
        if np.isin(removed, keys, assume_unique=True).any()
    ]
    deleted = _delete_segments("palace_id = %s AND id = ANY(%s)", [palace.pk, segments])
    remaining = {
        term: _take(columns, ~np.isin(columns[0], removed)) for term, columns in deleted.items()
    }
    _write(palace, *_concatenated(remaining), merged=False)


def terms_used_by(palace: Palace, terms: Collection[str], drawers: Iterable[int]) -> set[str]:
    """The terms that occur in any of the mined drawers."""
    if not terms:
        return set()
    keys = np.fromiter(drawers, dtype=np.int64)
    with_terms = Posting.objects.filter(palace=palace, term__in=terms)
    return {
        term
        for term, keys_of_term in with_terms.values_list("term", "drawers").iterator()
        if np.isin(keys, keys_of_term).any()
    }


def needs_compaction(palace: Palace) -> bool:
    """Whether many small segments were written since the last merge."""
    return Posting.objects.filter(palace=palace, term=EVERY, merged=False).count() > SMALL_SEGMENTS


def lock_rewrites(palace: Palace) -> None:
    """Serialise rewriting transactions, which would otherwise miss each other's rows."""
    hold_until_commit(f"rewrite postings of {palace.pk}")


@transaction.atomic
def compact(palace: Palace) -> None:
    """Merge small segments into full ones, atomically for readers."""
    lock_rewrites(palace)
    crowded = (
        "palace_id = %s AND (number < %s AND term IN (SELECT term FROM palace_posting"
        " WHERE palace_id = %s AND number < %s GROUP BY term HAVING count(*) > 1)"
        " OR term = %s AND NOT merged)"
    )
    deleted = _delete_segments(crowded, [palace.pk, SEGMENT_SIZE, palace.pk, SEGMENT_SIZE, EVERY])
    _write(palace, *_concatenated(deleted), merged=True)


def _delete_segments(condition: str, parameters: Sequence[Any]) -> dict[str, Columns]:
    """Delete these segments, and return their contents by term."""
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
    return _take(columns, np.argsort(columns[0], kind="stable"))


def _take(columns: Columns, places: npt.NDArray[np.generic]) -> Columns:
    return [column[places] for column in columns]


def _concatenated(postings: Mapping[str, Columns]) -> tuple[Mapping[str, int], Columns]:
    """Number of drawers per term, and the concatenated columns of all terms."""
    sizes = {term: len(columns[0]) for term, columns in postings.items()}
    return sizes, [np.concatenate(columns) for columns in zip(*postings.values(), strict=True)]


_INSERT = """
INSERT INTO palace_posting (palace_id, term, drawers, counts, lengths, total, merged)
SELECT %s, term, drawers, counts, lengths, total, %s FROM unnest(
    %b::text[], %b::bytea[], %b::bytea[], %b::bytea[], %b::int[]
) AS new (term, drawers, counts, lengths, total)
"""


def _write(palace: Palace, sizes: Mapping[str, int], columns: Columns, *, merged: bool) -> None:
    """
    Args:
        sizes: Number of drawers per term.
        columns: Concatenated columns of all terms.
    """
    if not sizes:
        return
    kinds: tuple[Kind, ...] = ("i8", "i2", "i2")
    # Packed together, because most terms have one or two drawers.
    packed = [pack(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    segments = list(_segments(sizes))
    totals = [
        int(columns[2][first:last].sum()) if term == EVERY else 0 for term, first, last in segments
    ]
    insert_packed(
        _INSERT,
        [
            *(palace.pk, merged, packed_values([term.encode() for term, *_ in segments], "text")),
            *(
                packed_values(
                    [column[w * first : w * last] for _, first, last in segments], "bytea"
                )
                for column, w in zip(packed, (8, 2, 2), strict=True)
            ),
            packed_numbers(totals, "i4"),
        ],
    )


def _segments(sizes: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Each segment's term, first index, and last index (exclusive)."""
    end = 0
    for term, size in sizes.items():
        start, end = end, end + size
        for first in range(start, end, SEGMENT_SIZE):
            yield term, first, min(first + SEGMENT_SIZE, end)


def enqueue_compaction(palace: Palace, *, with_long: bool = False) -> None:
    """Queue the compaction of a palace's postings, where it is needed and not queued yet."""
    with queue_may_be_away():
        if needs_compaction(palace):
            enqueue_once(compact_postings, palace.pk, with_long=with_long)


@shared_task(name="palace.tasks.compact_postings", reject_on_worker_lost=False)
def compact_postings(palace_id: int) -> None:
    leave_queue(compact_postings, palace_id)
    palaces = Palace.objects.filter(pk=palace_id)
    with in_palace(palaces):
        palace = palaces.first()
        if palace is not None and needs_compaction(palace):
            compact(palace)
