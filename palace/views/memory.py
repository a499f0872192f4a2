"""The palace at a glance, and its search: hits with a snippet and a bar for each signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect

from language.analyzer import analyze
from palace.errors import BadPointer, PalaceError
from palace.models import Activity, Drawer, Palace, Pointer
from palace.queries.places import find_by_pointer, wing_rows
from palace.queries.signals import SIGNALS, label_of
from palace.recall import Hit, RecallRequest, describe_move, recall
from palace.templatetags.palace_tags import counted
from palace.views.floor_plan import lit_by, plan_context, sources_of
from palace.views.shared.place_counts import totals
from palace.views.shared.query_params import ChosenDay
from palace.views.shared.snippets import snippet_of
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page

# Smaller shares have no visible bar, and a figure of 0.00.
SMALLEST_SHARE = 0.005
LINES = 6
# The number of activities searched for runs, and the most that a run unfolds.
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
# The palace as a list in place of the floor plan.
AS_LIST = "list"


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
    until = ChosenDay.read(request.GET).moment
    try:
        found = recall(palace, RecallRequest(query, top_k=HITS_SHOWN, as_of=until))
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
    if request.GET.get("view") != AS_LIST:
        lit = [hit.drawer.room_id for hit in search["found"].hits] if "found" in search else []
        if asked := request.GET.get("recall"):
            search["recall"], search["sources"] = sources_of(palace, asked)
            lit = lit_by(search["sources"])
        search |= plan_context(palace, wings, request.GET, lit)
    context = {
        **search,
        "wings": wings,
        "totals": totals(wings),
        "recent": recent_activity(palace),
    }
    is_bad = "error" in search or ("chosen" in search and search["chosen"].error)
    status = 400 if is_bad else 200
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
        more: The number of other activities in the run.
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
    # Each addition to a conversation is mined again.
    said = f"Remembered {counted(messages, 'message')} in {counted(rooms, 'conversation')}."
    return ActivityLine(said, at, tuple(summaries), count - len(summaries))


@dataclass(frozen=True, slots=True)
class Bar:
    """One signal's share, drawn on a scale of 0 to 100 that all hits of a recall share."""

    label: str
    share: float
    zero: float
    start: float
    width: float

    @property
    def figure(self) -> str:
        return f"{self.share:+.2f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class HitRow:
    hit: Hit
    place: int
    snippet: tuple[tuple[str, bool], ...]
    bars: tuple[Bar, ...]

    @property
    def url(self) -> str:
        start, end = self.hit.passage
        return f"{self.hit.drawer.get_absolute_url()}?passage={start}-{end}"

    @property
    def moved(self) -> str:
        """How a reranking model moved it, in a sentence; empty without one."""
        before = self.hit.place_before
        return "" if before is None else describe_move(before, self.place)


def hit_rows(hits: Sequence[Hit], query: str) -> list[HitRow]:
    """The hits as rows, in their order."""
    terms = set(analyze(query))
    shares = [0.0, *chain.from_iterable(hit.signals.values() for hit in hits)]
    low, high = min(shares), max(shares)
    return [
        HitRow(
            hit,
            place,
            snippet_of(hit.drawer.text, hit.passage, terms),
            _bars(hit.signals, low, high),
        )
        for place, hit in enumerate(hits, start=1)
    ]


def explained(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    """Label and explanation of every signal that has a bar somewhere in `hits`."""
    drawn = {name for hit in hits for name, share in hit.signals.items() if _is_drawn(share)}
    return [words for name, words in SIGNALS.items() if name in drawn]


def _is_drawn(share: float) -> bool:
    return abs(share) >= SMALLEST_SHARE


def _bars(signals: Mapping[str, float], low: float, high: float) -> tuple[Bar, ...]:
    scale = 100 / ((high - low) or 1)
    return tuple(
        Bar(
            label=label_of(name),
            share=share,
            zero=round(-low * scale, 1),
            start=round((min(share, 0) - low) * scale, 1),
            width=round(abs(share) * scale, 1),
        )
        for name, share in signals.items()
        if _is_drawn(share)
    )
