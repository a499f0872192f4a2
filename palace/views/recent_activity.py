"""What was done lately, runs of minings folded into a line each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from palace.models import Activity, Palace
from palace.templatetags.palace_tags import counted

LINES = 6
# How far back runs are followed, and how many of a run's activities are unfolded.
LOOKED_AT = 2000
UNFOLDED = 10

_LINES = """
WITH latest AS (
    SELECT id, summary, detail, created_at, kind = %s AS mined
    FROM palace_activity WHERE palace_id = %s ORDER BY created_at DESC, id DESC LIMIT %s
), numbered AS (
    SELECT *, count(*) FILTER (WHERE NOT mined) OVER (ORDER BY created_at DESC, id DESC) AS others
    FROM latest
)
SELECT (array_agg(summary ORDER BY created_at DESC, id DESC))[:%s], max(created_at), count(*),
    coalesce(sum((detail #>> '{made,drawers}')::int), 0), count(DISTINCT detail ->> 'room')
FROM numbered GROUP BY others, mined ORDER BY others, mined LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One activity, or a run of minings that nothing else came between.

    Attributes:
        folded: The summaries of the run, newest first and at most `UNFOLDED`; empty for one alone.
        more: How many of the run are not among them.
    """

    summary: str
    at: datetime
    folded: tuple[str, ...] = ()
    more: int = 0


def lately(palace: Palace) -> list[Line]:
    """Newest first, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_LINES, [Activity.Kind.MEMORY_MINED, palace.pk, LOOKED_AT, UNFOLDED, LINES])
        rows = cursor.fetchall()
    return [_line(*row) for row in rows]


def _line(summaries: list[str], at: datetime, count: int, messages: int, rooms: int) -> Line:
    if count == 1:
        return Line(summaries[0], at)
    # A conversation that goes on is mined again and again.
    said = f"Remembered {counted(messages, 'message')} in {counted(rooms, 'conversation')}."
    return Line(said, at, tuple(summaries), count - len(summaries))
