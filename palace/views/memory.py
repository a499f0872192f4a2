"""The palace at a glance: the search with its results, the plan, and what happened last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect, push_url, replace_url

from palace.errors import BadPointer, PalaceError
from palace.models import Activity, Drawer, ImportJob, Palace, Pointer
from palace.queries.places import find_by_pointer, wing_rows
from palace.recall import recall
from palace.templatetags.palace_tags import counted
from palace.views.floor_plan import lit_by, plan_context, sources_of
from palace.views.search import Search, filter_choices
from palace.views.search_hits import explained, hit_rows
from palace.views.shared.place_counts import totals
from palace.views.shared.query_params import ChosenDay, query_string
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page

LINES = 6
# The number of activities that are grouped, and the most that a run unfolds.
LOOKED_AT = 200
UNFOLDED = 10
_LINES = """
WITH latest AS (
    SELECT id, summary, detail, created_at, kind = %s AS mined
    FROM palace_activity WHERE palace_id = %s ORDER BY created_at DESC, id DESC LIMIT %s + 1
), numbered AS (
    SELECT *, count(*) FILTER (WHERE NOT mined) OVER (ORDER BY created_at DESC, id DESC) AS others
    FROM latest ORDER BY created_at DESC, id DESC LIMIT %s
)
SELECT (array_agg(summary ORDER BY created_at DESC, id DESC))[:%s], max(created_at), count(*),
    coalesce(sum((detail #>> '{made,drawers}')::int), 0), count(DISTINCT detail ->> 'room'),
    coalesce((SELECT mined FROM latest ORDER BY created_at DESC, id DESC OFFSET %s), false)
FROM numbered GROUP BY others, mined ORDER BY others, mined LIMIT %s
"""
# The elements that ask for results alone: the box while one types, and the filters.
LIVE = ("q", "filters")
# While an import runs, the plan of a palace with fewer drawers is drawn again as it grows.
GROWS_UNTIL = 2000
# The palace as a list in place of the floor plan.
AS_LIST = "list"


@signed_in_page
def memory(request: PageRequest) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    asked = Search.read(palace, request.GET)
    # While one types, only the results are exchanged, and nothing is put on record.
    is_live = request.htmx.trigger in LIVE
    drawer = None if asked.words is None else _by_pointer(palace, asked.words)
    if drawer is not None and not is_live:
        if request.htmx:
            return HttpResponseClientRedirect(drawer.get_absolute_url())
        return redirect(drawer)
    if not asked.is_asked or (is_live and asked.is_blank):
        return show_memory(request, palace, asked=asked, is_live=is_live)
    return _searched(request, palace, asked, is_live=is_live, drawer=drawer)


def _searched(
    request: PageRequest, palace: Palace, asked: Search, *, is_live: bool, drawer: Drawer | None
) -> HttpResponse:
    """The page with the results of a search.

    Args:
        drawer: The one whose pointer is typed.
    """
    page: dict[str, Any] = {"asked": asked, "query": asked.words, "is_live": is_live}
    until = ChosenDay.read(request.GET).moment
    keeps_trace = not is_live and (asked.like is None or "why" in request.GET)
    try:
        found = recall(palace, replace(asked.request(store_trace=keeps_trace), as_of=until))
    except PalaceError as error:
        return show_memory(request, palace, **page, error=str(error))
    if "why" in request.GET and keeps_trace:
        return redirect("recall_detail", found.uuid)
    page |= {
        "pointed": drawer,
        "found": found,
        "is_kept": keeps_trace,
        "hits": hit_rows(found.hits, found.query, is_like=asked.like is not None),
        "signals": explained(found.hits),
    }
    return show_memory(request, palace, **page)


def show_memory(request: PageRequest, palace: Palace, **search: Any) -> HttpResponse:
    """The page with the results of a search, or its `error`."""
    wings = wing_rows(palace)
    search.setdefault("asked", Search(words=search.get("query")))
    if request.GET.get("view") != AS_LIST:
        lit = [hit.drawer.room_id for hit in search["found"].hits] if "found" in search else []
        if asked := request.GET.get("recall"):
            search["recall"], search["sources"] = sources_of(palace, asked)
            lit = lit_by(search["sources"])
        search |= plan_context(palace, wings, request.GET, lit)
    is_live = search.get("is_live", False)
    if not is_live:
        search |= {"totals": totals(wings), **filter_choices(palace, wings, search["asked"])}
    context = {
        **search,
        "wings": wings,
        "grows": not request.GET and sum(row.drawers for row in wings) < GROWS_UNTIL,
        "view": AS_LIST if request.GET.get("view") == AS_LIST else "",
        "recent": recent_activity(palace),
        "is_importing": not wings and _is_importing(palace),
    }
    is_bad = "error" in search or ("chosen" in search and search["chosen"].error)
    status = 400 if is_bad else 200
    part = "found" if is_live else "body"
    response = render_page_or_part(request, "palace/memory.html", part, context, status=status)
    if is_live:
        replace_url(response, _own_address(request))
    elif request.htmx:
        push_url(response, _own_address(request))
    return response


def _is_importing(palace: Palace) -> bool:
    running = ImportJob.objects.filter(palace=palace, status=ImportJob.Status.RUNNING)
    return running.exists()


def _own_address(request: PageRequest) -> str:
    """The address of the request without the fields that were left empty."""
    return request.path + query_string(**request.GET.dict())


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
        more: The number of other activities in the run.
        is_cut: The run goes on before the latest `LOOKED_AT` activities, so there are more.
    """

    summary: str
    at: datetime
    folded: tuple[str, ...] = ()
    more: int = 0
    is_cut: bool = False


def recent_activity(palace: Palace) -> list[ActivityLine]:
    """Newest first, in one query."""
    with connection.cursor() as cursor:
        limits = (LOOKED_AT, LOOKED_AT, UNFOLDED, LOOKED_AT, LINES)
        cursor.execute(_LINES, [Activity.Kind.MEMORY_MINED, palace.pk, *limits])
        rows = cursor.fetchall()
    lines = []
    looked_at = 0
    for summaries, at, count, messages, rooms, goes_on in rows:
        looked_at += count
        is_cut = goes_on and looked_at == LOOKED_AT
        lines.append(_line(summaries, at, count, messages, rooms, is_cut=is_cut))
    return lines


def _line(
    summaries: list[str], at: datetime, count: int, messages: int, rooms: int, *, is_cut: bool
) -> ActivityLine:
    if count == 1:
        return ActivityLine(summaries[0], at)
    # Each addition to a conversation is mined again.
    if is_cut:
        said = f"Remembered {messages:,}+ messages in {rooms:,}+ conversations."
    else:
        said = f"Remembered {counted(messages, 'message')} in {counted(rooms, 'conversation')}."
    return ActivityLine(said, at, tuple(summaries), count - len(summaries), is_cut)
