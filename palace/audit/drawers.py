"""Each accepted message is one drawer, in one place, with vectors in the active space."""

from __future__ import annotations

from django.db import connection

from palace.audit.finding import Check, Finding, finding, rows_breaking
from palace.models import Palace

# Passages without a vector, and unmined drawers, are the queue that the worker reads.
_WITHOUT_PASSAGE = """
SELECT d.uuid, d.text FROM palace_drawer d
WHERE d.palace_id = %s AND d.trashed_at IS NULL AND d.mined_at IS NOT NULL
  AND NOT EXISTS (
    SELECT FROM palace_passage p JOIN palace_embeddingspace s ON s.id = p.space_id AND s.active
    WHERE p.palace_id = d.palace_id AND p.drawer_id = d.id)
ORDER BY d.id
"""


def drawers_are_embedded(palace: Palace) -> Finding:
    # Python decides what is blank, as it does where passages are cut.
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_PASSAGE, [palace.pk])
        wrong = [uuid for uuid, text in cursor if text.strip()]
    return finding(
        "drawer-embedded",
        "A mined drawer outside the trash has passages in the active space, with a vector or "
        "queued for one.",
        wrong,
    )


def _dimensions(table: str, key: str, what: str) -> Check:
    return rows_breaking(
        f"{what}-vector",
        f"The vector of each {what} is as long as those of its space.",
        f"SELECT v.{key} FROM palace_{table} v JOIN palace_embeddingspace s"  # noqa: S608 - ours.
        " ON s.id = v.space_id WHERE v.palace_id = %(palace)s"
        " AND vector_dims(v.embedding) <> s.dimensions",
    )


CHECKS = (
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
    drawers_are_embedded,
    rows_breaking(
        "passage-span",
        "A passage is a stretch of its drawer's text.",
        "SELECT p.drawer_id || ' ' || p.ordinal FROM palace_passage p"
        " LEFT JOIN palace_drawer d ON d.palace_id = p.palace_id AND d.id = p.drawer_id"
        ' WHERE p.palace_id = %(palace)s AND (d.id IS NULL OR p.start >= p."end"'
        ' OR p."end" > length(d.text))',
    ),
    _dimensions("passage", "drawer_id", "passage"),
    _dimensions("factvector", "fact_id", "fact"),
    _dimensions("episodevector", "episode_id", "episode"),
)
