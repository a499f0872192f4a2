"""Checks of drawers: one for each accepted message, in one place, with vectors and postings.

The postings must equal those of a rebuild. Both are compared by a fingerprint for each term, so
that memory grows with the vocabulary, not with the palace.

What a check finds, and a check that is one query, are here too: the other checks import them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection

from language.analyzer import VERSION, analyze
from palace.models import Drawer, Palace, Posting
from palace.storage import MAX_PASSAGES, TEXT_DIGEST
from palace.storage.indexing.postings import EVERY, MAX_COUNT

# The most ids that a finding shows.
SHOWN = 5
# Passages without a vector, and unmined drawers, are the queue that the worker reads.
_WITHOUT_PASSAGE = """
SELECT d.uuid, d.text FROM palace_drawer d
WHERE d.palace_id = %s AND d.trashed_at IS NULL AND d.mined_at IS NOT NULL
  AND NOT EXISTS (
    SELECT FROM palace_passage p JOIN palace_embeddingspace s ON s.id = p.space_id AND s.active
    WHERE p.palace_id = d.palace_id AND p.drawer_id = d.id)
ORDER BY d.id
"""
# What lies before a passage or after the last one, and in no other.
_BESIDE_PASSAGES = """
SELECT uuid, outside FROM (
  SELECT d.id, d.uuid, p.ordinal, substr(d.text, covered + 1, p.start - covered) AS before,
    CASE WHEN p.is_last THEN substr(d.text, greatest(covered, p."end") + 1) ELSE '' END AS after
  FROM (
    SELECT drawer_id, ordinal, start, "end", space_id,
      coalesce(max("end") OVER (
        earlier ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW), 0) AS covered,
      lead(ordinal) OVER earlier IS NULL AND ordinal < %(most)s - 1 AS is_last
    FROM palace_passage WHERE palace_id = %(palace)s
    WINDOW earlier AS (PARTITION BY space_id, drawer_id ORDER BY ordinal)
  ) p
  JOIN palace_embeddingspace s ON s.id = p.space_id AND s.active
  JOIN palace_drawer d ON d.palace_id = %(palace)s AND d.id = p.drawer_id
  WHERE p.start > covered OR (p.is_last AND greatest(covered, p."end") < length(d.text))
) p CROSS JOIN LATERAL (VALUES (before), (after)) beside (outside)
WHERE outside <> '' ORDER BY id, ordinal
"""
BATCH = 500

Numbers = npt.NDArray[np.uint64]
# By term: the number of its entries, and the sum of their hashes modulo 2^64, in any order.
Fingerprints = dict[str, tuple[int, int]]

# SplitMix64, by Guy Steele, Doug Lea and Christine Flood (2014).
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        check: The check's name.
        rule: What must hold, in one sentence.
        wrong: How many rows break the rule.
        examples: Ids of the first few.
    """

    check: str
    rule: str
    wrong: int = 0
    examples: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "examples": list(self.examples)}


Check = Callable[[Palace], Finding]


def finding(check: str, rule: str, wrong: Sequence[object]) -> Finding:
    """The finding of a check, from the ids that are wrong."""
    return Finding(check, rule, len(wrong), tuple(str(each) for each in wrong[:SHOWN]))


def rows_breaking(check: str, rule: str, query: str) -> Check:
    """A check that is one query.

    Args:
        query: Selects the id of each row that breaks the rule; `%(palace)s` is the palace's key.
    """
    statement = (
        f"SELECT id::text, count(*) OVER () FROM ({query}) w (id)"  # noqa: S608 - written by us.
        f" ORDER BY 1 LIMIT {SHOWN}"
    )

    def run(palace: Palace) -> Finding:
        with connection.cursor() as cursor:
            cursor.execute(statement, {"palace": palace.pk})
            rows = cursor.fetchall()
        return Finding(check, rule, rows[0][1] if rows else 0, tuple(row[0] for row in rows))

    return run


def drawers_are_embedded(palace: Palace) -> Finding:
    # Python decides what is blank, as when passages are cut.
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_PASSAGE, [palace.pk])
        wrong = [uuid for uuid, text in cursor if text.strip()]
    return finding(
        "drawer-embedded",
        "A mined drawer outside the trash has passages in the active space, with a vector or "
        "queued for one.",
        wrong,
    )


def passages_cover_their_drawers(palace: Palace) -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(_BESIDE_PASSAGES, {"palace": palace.pk, "most": MAX_PASSAGES})
        # Stretches without a word have no passage; Python decides what is blank.
        wrong = dict.fromkeys(uuid for uuid, outside in cursor if outside.strip())
    return finding(
        "passage-cover", "Each word of a message with passages is in one of them.", list(wrong)
    )


def _dimensions(table: str, key: str, what: str) -> Check:
    return rows_breaking(
        f"{what}-vector",
        f"The vector of each {what} is as long as those of its space, and not zero.",
        f"SELECT v.{key} FROM palace_{table} v JOIN palace_embeddingspace s"  # noqa: S608 - ours.
        " ON s.id = v.space_id WHERE v.palace_id = %(palace)s"
        " AND (vector_dims(v.embedding) <> s.dimensions OR v.embedding <#> v.embedding >= 0)",
    )


def postings_equal_a_rebuild(palace: Palace) -> Finding:
    """Postings of an older analyzer are not compared: they wait for a rebuild."""
    is_old = palace.analyzer < VERSION
    there, rebuilt = ({}, {}) if is_old else (_stored(palace), _rebuilt(palace))
    wrong = sorted(
        term for term in there.keys() | rebuilt.keys() if there.get(term) != rebuilt.get(term)
    )
    return finding(
        "postings",
        "The postings of each term are those of a rebuild.",
        [term or "(every drawer)" for term in wrong],
    )


def lengths_are_right(palace: Palace) -> Finding:
    mined = _mined(palace) if palace.analyzer == VERSION else ()
    wrong = [drawer.uuid for drawer in mined if drawer.terms != analyze(drawer.text).total()]
    return finding("drawer-terms", "A drawer's length in terms is that of its text.", wrong)


def _mined(palace: Palace) -> Iterator[Drawer]:
    mined = Drawer.objects.within(palace).exclude(mined_at=None).order_by("pk")
    return mined.only("pk", "uuid", "text", "terms").iterator(chunk_size=BATCH)


def _rebuilt(palace: Palace) -> Fingerprints:
    sums: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for drawer in _mined(palace):
        terms = analyze(drawer.text)
        counts = {EVERY: 1, **terms}
        values = _hashes(
            np.full(len(counts), drawer.pk, np.uint64),
            np.minimum(list(counts.values()), MAX_COUNT).astype(np.uint64),
            np.full(len(counts), min(terms.total(), MAX_COUNT), np.uint64),
        )
        for term, value in zip(counts, values.tolist(), strict=True):
            number, total = sums[term]
            sums[term] = number + 1, (total + value) & _MASK
    return dict(sums)


def _stored(palace: Palace) -> Fingerprints:
    sums: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    segments = Posting.objects.filter(palace=palace).order_by()
    for term, *columns in segments.values_list("term", "drawers", "counts", "lengths").iterator():
        values = _hashes(*(column.astype(np.uint64) for column in columns))
        number, total = sums[term]
        sums[term] = number + len(values), (total + int(values.sum())) & _MASK
    return dict(sums)


def _hashes(drawers: Numbers, counts: Numbers, lengths: Numbers) -> Numbers:
    """A 64-bit hash of each entry."""
    mixed = _mix(drawers)
    return _mix(mixed ^ (counts << np.uint64(16)) ^ lengths)


def _mix(numbers: Numbers) -> Numbers:
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _STEPS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)


CHECKS = (
    rows_breaking(
        "accepted-kept",
        "An accepted message is a drawer, unless it was purged.",
        "SELECT a.uuid FROM palace_acceptedmessage a WHERE a.palace_id = %(palace)s"
        " AND a.purged_at IS NULL AND NOT EXISTS ("
        "SELECT FROM palace_drawer d WHERE d.palace_id = a.palace_id AND d.uuid = a.uuid)",
    ),
    rows_breaking(
        "accepted-verbatim",
        "A drawer says to the byte what was accepted.",
        "SELECT a.uuid FROM palace_acceptedmessage a JOIN palace_drawer d"  # noqa: S608 - ours.
        " ON d.palace_id = a.palace_id AND d.uuid = a.uuid"
        f" WHERE a.palace_id = %(palace)s AND a.digest <> {TEXT_DIGEST.format('d.text')}",
    ),
    rows_breaking(
        "purged-gone",
        "Of a purged message neither its drawer nor its digest is left.",
        "SELECT a.uuid FROM palace_acceptedmessage a LEFT JOIN palace_drawer d"
        " ON d.palace_id = a.palace_id AND d.uuid = a.uuid"
        " WHERE a.palace_id = %(palace)s AND a.purged_at IS NOT NULL"
        " AND (d.id IS NOT NULL OR a.digest IS NOT NULL)",
    ),
    rows_breaking(
        "drawer-once",
        "A message of a conversation is one drawer.",
        "SELECT min(uuid::text) FROM palace_drawer WHERE palace_id = %(palace)s"
        " GROUP BY source, conversation, external_id HAVING count(*) > 1",
    ),
    rows_breaking(
        "drawer-pointer",
        "A pointer leads to one drawer.",
        "SELECT min(d.uuid::text) FROM palace_drawer d"
        " JOIN palace_room r ON r.palace_id = d.palace_id AND r.id = d.room_id"
        " WHERE d.palace_id = %(palace)s GROUP BY r.number, d.number HAVING count(*) > 1",
    ),
    rows_breaking(
        "drawer-order",
        "No two messages of a conversation have the same place in it.",
        "SELECT min(uuid::text) FROM palace_drawer WHERE palace_id = %(palace)s"
        " GROUP BY source, conversation, position HAVING count(*) > 1",
    ),
    rows_breaking(
        "drawer-place",
        "A drawer lies in a room of its palace, and its closet is in that room.",
        "SELECT d.uuid FROM palace_drawer d"
        " LEFT JOIN palace_room r ON r.palace_id = d.palace_id AND r.id = d.room_id"
        " LEFT JOIN palace_closet c ON c.palace_id = d.palace_id AND c.id = d.closet_id"
        " WHERE d.palace_id = %(palace)s AND (r.id IS NULL"
        " OR d.closet_id IS NOT NULL AND c.room_id IS DISTINCT FROM d.room_id)",
    ),
    rows_breaking(
        "room-place",
        "A room lies in a wing of its palace.",
        "SELECT r.uuid FROM palace_room r"
        " LEFT JOIN palace_wing w ON w.palace_id = r.palace_id AND w.id = r.wing_id"
        " WHERE r.palace_id = %(palace)s AND w.id IS NULL",
    ),
    rows_breaking(
        "room-counts",
        "A room counts its drawers, their bytes, and of both those outside the trash.",
        "SELECT r.uuid FROM palace_room r LEFT JOIN palace_drawer d"
        " ON d.palace_id = r.palace_id AND d.room_id = r.id WHERE r.palace_id = %(palace)s"
        " GROUP BY r.palace_id, r.id"
        " HAVING (r.stored_count, r.stored_bytes, r.kept_count, r.kept_bytes) <>"
        " (count(d.id), coalesce(sum(octet_length(d.text)), 0),"
        " count(d.id) FILTER (WHERE d.trashed_at IS NULL),"
        " coalesce(sum(octet_length(d.text)) FILTER (WHERE d.trashed_at IS NULL), 0))",
    ),
    rows_breaking(
        "room-span",
        "The messages of a room were said between its beginning and its end.",
        "SELECT r.uuid FROM palace_room r WHERE r.palace_id = %(palace)s AND EXISTS ("
        "SELECT FROM palace_drawer d WHERE d.palace_id = r.palace_id AND d.room_id = r.id"
        " AND d.said_at NOT BETWEEN r.started_at AND r.ended_at)",
    ),
    rows_breaking(
        "mention-span",
        "A mention names an entity of the palace, in characters that the drawer has.",
        "SELECT m.id FROM palace_mention m"
        " LEFT JOIN palace_drawer d ON d.palace_id = m.palace_id AND d.id = m.drawer_id"
        " LEFT JOIN palace_entity e ON e.palace_id = m.palace_id AND e.id = m.entity_id"
        ' WHERE m.palace_id = %(palace)s AND (e.id IS NULL OR d.id IS NULL OR m.start >= m."end"'
        ' OR m."end" > length(d.text))',
    ),
    rows_breaking(
        "import-sums",
        "Of a finished import, stored, present and skipped messages add up to what was read.",
        "SELECT j.uuid FROM palace_importjob j WHERE palace_id = %(palace)s AND status = 'done'"
        " AND messages_total <> messages_stored + messages_present + coalesce("
        "(SELECT sum(value::int) FROM jsonb_each_text(j.messages_skipped)), 0)",
    ),
    rows_breaking(
        "import-once",
        "An import ended once: one line of the activity has its receipt.",
        "SELECT detail ->> 'job' FROM palace_activity WHERE palace_id = %(palace)s"
        " AND kind = 'chats_imported' AND detail ->> 'job' IS NOT NULL"
        " GROUP BY 1 HAVING count(*) > 1",
    ),
    drawers_are_embedded,
    rows_breaking(
        "passage-span",
        "A passage is a stretch of its drawer's text.",
        "SELECT p.drawer_id || ' ' || p.ordinal FROM palace_passage p"
        " LEFT JOIN palace_drawer d ON d.palace_id = p.palace_id AND d.id = p.drawer_id"
        ' WHERE p.palace_id = %(palace)s AND (d.id IS NULL OR p.start >= p."end"'
        ' OR p."end" > length(d.text))',
    ),
    rows_breaking(
        "passage-order",
        "A message's passages are numbered from 0 in the order of their words.",
        "SELECT DISTINCT drawer_id FROM (SELECT drawer_id, ordinal, row_number() OVER ("
        'PARTITION BY space_id, drawer_id ORDER BY start, "end") - 1 AS place'
        " FROM palace_passage WHERE palace_id = %(palace)s) p WHERE ordinal <> place",
    ),
    passages_cover_their_drawers,
    _dimensions("passage", "drawer_id", "passage"),
    _dimensions("factvector", "fact_id", "fact"),
    _dimensions("episodevector", "episode_id", "episode"),
    postings_equal_a_rebuild,
    lengths_are_right,
)
