"""Packed postings: append, merge and clean the segments that BM25 reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from django.db import connection, transaction

from palace.indexing.analyzer import analyze
from palace.models import Drawer, Palace, Posting
from palace.models.locks import hold_until_commit

# The term that every drawer has: its segments give the number of drawers and their mean length.
EVERY = ""
SEGMENT_SIZE = 256
MAX_COUNT = 32767  # A smallint's largest.
# Reading many small segments costs more than one merge now and then.
SMALL_SEGMENTS = 48

Terms = Mapping[int, Counter[str]]


def append(palace: Palace, terms: Terms) -> None:
    """Add drawers (key → its terms) that have no postings yet; call it in a transaction."""
    segments: defaultdict[str, tuple[list[int], list[int], list[int]]] = defaultdict(
        lambda: ([], [], [])
    )
    for drawer_id, counts in sorted(terms.items()):
        length = min(counts.total(), MAX_COUNT)
        for term, count in [*counts.items(), (EVERY, 1)]:
            drawers, tallies, lengths = segments[term]
            drawers.append(drawer_id)
            tallies.append(min(count, MAX_COUNT))
            lengths.append(length)
    statement = "COPY palace_posting (palace_id, term, drawers, counts, lengths) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for term, columns in segments.items():
            for first in range(0, len(columns[0]), SEGMENT_SIZE):
                arrays = (column[first : first + SEGMENT_SIZE] for column in columns)
                copy.write_row((palace.pk, term, *arrays))


def remove(palace: Palace, drawers: Sequence[Drawer]) -> None:
    """Take drawers out of the postings, before they are purged; call it in a transaction."""
    rewrite_alone(palace)
    gone = [drawer.pk for drawer in drawers]
    terms = {EVERY}.union(*(analyze(drawer.text) for drawer in drawers))
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH cut AS (
                DELETE FROM palace_posting
                WHERE palace_id = %s AND term = ANY(%s)
                  -- Not `drawers && ...`, which compares each with each.
                  AND EXISTS (SELECT FROM unnest(drawers) AS key WHERE key = ANY(%s::bigint[]))
                RETURNING term, drawers, counts, lengths
            ), flat AS (
                SELECT term, unnest(drawers) AS d, unnest(counts) AS c, unnest(lengths) AS l
                FROM cut
            ), numbered AS (
                SELECT *, (row_number() OVER (PARTITION BY term ORDER BY d) - 1) / %s AS segment
                FROM flat WHERE d <> ALL(%s)
            )
            INSERT INTO palace_posting (palace_id, term, drawers, counts, lengths)
            SELECT %s, term, array_agg(d ORDER BY d), array_agg(c ORDER BY d),
                array_agg(l ORDER BY d)
            FROM numbered GROUP BY term, segment
            """,
            [palace.pk, list(terms), gone, SEGMENT_SIZE, gone, palace.pk],
        )


def needs_compaction(palace: Palace) -> bool:
    small = Posting.objects.filter(palace=palace, term=EVERY, drawers__len__lt=SEGMENT_SIZE)
    return small.count() > SMALL_SEGMENTS


def rewrite_alone(palace: Palace) -> None:
    """Rewriting is done by one transaction at a time, or it would miss what another just wrote."""
    hold_until_commit(f"rewrite postings of {palace.pk}")


@transaction.atomic
def compact(palace: Palace) -> None:
    """Merge small segments into full ones. Readers see the old or the new ones, never both."""
    rewrite_alone(palace)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH crowded AS (
                SELECT term FROM palace_posting
                WHERE palace_id = %s AND cardinality(drawers) < %s
                GROUP BY term HAVING count(*) > 1
            ), cut AS (
                DELETE FROM palace_posting p USING crowded
                WHERE p.palace_id = %s AND p.term = crowded.term AND cardinality(p.drawers) < %s
                RETURNING p.term, drawers, counts, lengths
            ), flat AS (
                SELECT term, unnest(drawers) AS d, unnest(counts) AS c, unnest(lengths) AS l
                FROM cut
            ), numbered AS (
                SELECT *, (row_number() OVER (PARTITION BY term ORDER BY d) - 1) / %s AS segment
                FROM flat
            )
            INSERT INTO palace_posting (palace_id, term, drawers, counts, lengths)
            SELECT %s, term, array_agg(d ORDER BY d), array_agg(c ORDER BY d),
                array_agg(l ORDER BY d)
            FROM numbered GROUP BY term, segment
            """,
            [palace.pk, SEGMENT_SIZE, palace.pk, SEGMENT_SIZE, SEGMENT_SIZE, palace.pk],
        )
