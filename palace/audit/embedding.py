"""Each drawer is embedded in the active space, or queued for it."""

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
