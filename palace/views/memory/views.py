"""The palace at a glance, and the search box."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect

from palace.errors import BadPointer, PalaceError
from palace.models import Activity, Drawer, Palace
from palace.models.aaak import Pointer
from palace.queries.places import find_by_pointer, wing_rows
from palace.recall.recall import recall
from palace.recall.request import RecallRequest
from palace.templatetags.palace_tags import counted
from palace.views.inbox.views import waiting_count
from palace.views.memory.search_results import explained, hit_rows
from palace.views.shared.place_counts import totals
from settings_app.access import PageRequest, signed_in_page
from settings_app.rendering import render_page_or_part

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
HITS_SHOWN = 20


@signed_in_page
def memory(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    query = request.GET.get("q")
    if query is None:
        return show_memory(request, palace)
    drawer = _by_pointer(palace, query)
    if drawer is not None:
        if request.htmx:
            return HttpResponseClientRedirect(drawer.get_absolute_url())
        return redirect(drawer)
    try:
        found = recall(palace, RecallRequest(query, top_k=HITS_SHOWN))
    except PalaceError as error:
        return show_memory(request, palace, query=query, error=str(error))
    return show_memory(
        request,
        palace,
        query=query,
        found=found,
        hits=hit_rows(found.hits, query),
        signals=explained(found.hits),
    )


def show_memory(request: PageRequest, palace: Palace, **search: Any) -> HttpResponse:
    """The page with the results of a search, or its `error`."""
    wings = wing_rows(palace)
    context = {
        **search,
        "wings": wings,
        "totals": totals(wings),
        "recent": recent_activity(palace),
        "proposals": waiting_count(palace),
    }
    status = 400 if "error" in search else 200
    return render_page_or_part(request, "palace/memory.html", "body", context, status=status)


def _by_pointer(palace: Palace, query: str) -> Drawer | None:
    """A pointer pasted into the search box leads straight to its drawer."""
    try:
        return find_by_pointer(palace, Pointer.parse(query))
    except BadPointer:
        return None


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One activity, or several minings in a row.

    Attributes:
        folded: The summaries of the run, newest first and at most `UNFOLDED`; empty for one alone.
        more: How many of the run are not among them.
    """

    summary: str
    at: datetime
    folded: tuple[str, ...] = ()
    more: int = 0


def recent_activity(palace: Palace) -> list[ActivityLine]:
    """Newest first, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_LINES, [Activity.Kind.MEMORY_MINED, palace.pk, LOOKED_AT, UNFOLDED, LINES])
        rows = cursor.fetchall()
    return [_line(*row) for row in rows]


def _line(
    summaries: list[str], at: datetime, count: int, messages: int, rooms: int
) -> ActivityLine:
    if count == 1:
        return ActivityLine(summaries[0], at)
    # A conversation that goes on is mined again and again.
    said = f"Remembered {counted(messages, 'message')} in {counted(rooms, 'conversation')}."
    return ActivityLine(said, at, tuple(summaries), count - len(summaries))
