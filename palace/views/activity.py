"""The activity log: each entry with its figures and a link to what it is about; undoing it; and its
latest lines, on the page of the palace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse

from isolation.raw_sql import fetch_rows
from palace.curation.refiling import undo_move
from palace.curation.wings import NoWayBack, undo_merge_wings
from palace.models import Activity, ImportJob, Palace, Proposal, Room, Wing
from palace.views.shared.query_params import CountedPage, way_back
from settings_app.pages import (
    PageRequest,
    render_page_or_part,
    signed_in_action,
    signed_in_page,
)
from settings_app.row_tags import counted, dollars

LOOKED_AT = {
    "facts": ("fact looked at", "facts looked at"),
    "feedback": ("correction looked at", "corrections looked at"),
    "messages": ("message looked at", "messages looked at"),
}
# Figures in display order: singular and plural.
FIGURES = {
    "drawers": ("drawer", "drawers"),
    "rooms": ("room", "rooms"),
    "topics": ("new topic", "new topics"),
    "entities": ("new name", "new names"),
    "in": ("message in the file", "messages in the file"),
    "stored": ("stored", "stored"),
    "present": ("already there", "already there"),
    "skipped": ("skipped", "skipped"),
}
LINES = 6
# The number of activities that are grouped, and the most that a run unfolds.
GROUPED = 200
UNFOLDED = 10
_LINES = f"""
WITH latest AS (
    SELECT id, summary, detail, created_at, kind = '{Activity.Kind.MEMORY_MINED}' AS mined
    FROM palace_activity WHERE palace_id = %s
    ORDER BY created_at DESC, id DESC LIMIT {GROUPED} + 1
), numbered AS (
    SELECT *, count(*) FILTER (WHERE NOT mined) OVER (ORDER BY created_at DESC, id DESC) AS others
    FROM latest ORDER BY created_at DESC, id DESC LIMIT {GROUPED}
)
SELECT (array_agg(summary ORDER BY created_at DESC, id DESC))[:{UNFOLDED}],
    max(created_at), count(*), coalesce(sum((detail #>> '{{made,drawers}}')::int), 0),
    count(DISTINCT detail ->> 'room'), coalesce(
        (SELECT mined FROM latest ORDER BY created_at DESC, id DESC OFFSET {GROUPED}), false)
FROM numbered GROUP BY others, mined ORDER BY others, mined LIMIT {LINES}
"""  # noqa: S608 - put together from constants.
UNDOES = {
    Activity.Kind.DRAWERS_MOVED: "activity_undo",
    Activity.Kind.WINGS_MERGED: "activity_undo",
    Activity.Kind.ENTITIES_MERGED: "entity_undo",
    Activity.Kind.ENTITY_SPLIT: "entity_undo",
}


@dataclass(frozen=True, slots=True)
class ActivityRow:
    """
    Attributes:
        figures: (name, number) of each figure.
        place: What it was about, if that is still there: its name for the link, and its address.
        notes: What was degraded, in sentences.
    """

    activity: Activity
    figures: tuple[tuple[str, str], ...]
    place: tuple[str, str] | None
    notes: tuple[str, ...]

    @property
    def undo(self) -> str:
        return undo_address(self.activity)


@signed_in_page
def activities(request: PageRequest) -> HttpResponse:
    """Newest first; `?kind=` shows those of one kind."""
    palace = Palace.objects.own(request.user)
    kind = request.GET.get("kind", "")
    found = Activity.objects.filter(palace=palace).order_by("-created_at", "-pk")
    if kind in Activity.Kind:
        found = found.filter(kind=kind)
    listed = CountedPage(found, request.GET.get("page"))
    context = {
        "listed": listed,
        "rows": _rows(palace, listed.rows),
        "kinds": _kinds(palace, kind),
        "kind": kind if kind in Activity.Kind else "",
    }
    return render_page_or_part(request, "palace/activities.html", "rows", context)


@signed_in_action
def activity_undo(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Undo a move or a merge of wings, and go back to `next` or to where it is now."""
    palace = Palace.objects.own(request.user)
    kinds = [kind for kind, name in UNDOES.items() if name == "activity_undo"]
    activity = get_object_or_404(Activity, palace=palace, kind__in=kinds, uuid=uuid)
    try:
        said, wings = _undo(palace, activity)
    except NoWayBack as error:
        messages.error(request, str(error))
        return redirect("activities")
    if not wings:
        messages.info(request, "There was nothing to undo.")
        return redirect("activities")
    messages.success(request, said)
    return redirect(way_back(request) or (wings[0] if len(wings) == 1 else "memory"))


def _undo(palace: Palace, activity: Activity) -> tuple[str, list[Wing]]:
    """What to say of it, and where it is now: no wing if it was undone before.

    Raises:
        NoWayBack: it cannot be undone.
    """
    if activity.kind == Activity.Kind.WINGS_MERGED:
        wing = undo_merge_wings(palace, activity)
        return "Undone. It is as it was before.", [wing] if wing else []
    area = activity.detail.get("undo", {}).get("made_for")
    count, wings = undo_move(palace, activity)
    and_so = f", and Loci does not make “{area}” again" if area else ""
    return f"Undone: {counted(count, 'message')} moved back{and_so}.", wings


def say_done(request: PageRequest, said: str, activity: Activity | None) -> None:
    """Say what was done, with a button that undoes it if that is possible."""
    address = undo_address(activity) if activity else ""
    if address:
        context = {"said": said, "address": address}
        # Rendering has escaped the names and marked the text as safe.
        said = render_to_string("palace/_undo_activity.html", context, request)
    messages.success(request, said)


def undo_address(activity: Activity) -> str:
    """Where to send what undoes it; empty if nothing does."""
    name = UNDOES.get(Activity.Kind(activity.kind), "")
    return reverse(name, args=[activity.uuid]) if name and "undo" in activity.detail else ""


def _kinds(palace: Palace, chosen: str) -> list[tuple[str, str]]:
    """Name and label of each kind that there is any activity of, and of the chosen one."""
    done = Activity.objects.filter(palace=palace).order_by().values_list("kind", flat=True)
    present = {chosen, *done.distinct()}
    return [(kind, label) for kind, label in Activity.Kind.choices if kind in present]


def _rows(palace: Palace, found: Sequence[Activity]) -> list[ActivityRow]:
    places = _places(palace, [activity.detail for activity in found])
    return [
        ActivityRow(
            activity,
            _figures(activity),
            _place(activity, places),
            tuple(map(str, activity.detail.get("notes", ()))),
        )
        for activity in found
    ]


def _figures(activity: Activity) -> tuple[tuple[str, str], ...]:
    detail = activity.detail
    if activity.kind == Activity.Kind.DREAMT:
        return tuple(dream_figures(detail))
    numbers = {**detail, **detail.get("made", {})}
    return tuple(
        (words[numbers[name] != 1], f"{numbers[name]:,}")
        for name, words in FIGURES.items()
        if isinstance(numbers.get(name), int)
    )


def _place(activity: Activity, places: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    if activity.kind == Activity.Kind.DREAMT:
        return dream_place(activity)
    for about in ("room", "wing", "job"):
        if found := places.get(str(activity.detail.get(about))):
            return found
    return None


def _places(palace: Palace, details: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Label and URL by public id, for what still exists."""
    named: dict[str, list[UUID]] = {"room": [], "wing": [], "job": []}
    for detail in details:
        for about, ids in named.items():
            if about in detail:
                ids.append(UUID(detail[about]))
    rooms = Room.objects.within(palace).filter(uuid__in=named["room"])
    wings = Wing.objects.within(palace).filter(uuid__in=named["wing"])
    jobs = ImportJob.objects.filter(palace=palace, uuid__in=named["job"])
    return {
        **{str(room.uuid): ("Go to the room", room.get_absolute_url()) for room in rooms},
        **{str(wing.uuid): ("Go to the wing", wing.get_absolute_url()) for wing in wings},
        **{str(job.uuid): ("See the import", job.get_absolute_url()) for job in jobs},
    }


def dream_figures(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, number) of each figure."""
    looked, proposed = detail.get("looked_at", {}), detail.get("proposed", {})
    for name, words in LOOKED_AT.items():
        if count := looked.get(name):
            yield words[count != 1], f"{count:,}"
    for kind in Proposal.Kind:
        if count := proposed.get(kind.value):
            yield f"proposed: {kind.label}", f"{count:,}"
    if rooms := detail.get("rooms"):
        yield "projects suggested", f"{rooms:,}"
    if applied := detail.get("applied"):
        yield "applied automatically", f"{applied:,}"
    yield from _costs(detail)


def dream_place(activity: Activity) -> tuple[str, str] | None:
    """Label and URL of the dream's proposals, or else of the rooms that it found."""
    if activity.detail.get("proposed"):
        return "See what it proposed", f"{reverse('inbox')}?dream={activity.uuid}"
    if activity.detail.get("rooms"):
        return "See the conversations", f"{reverse('inbox')}?show=rooms"
    return None


def _costs(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    calls = detail.get("calls", 0)
    if not detail.get("model"):
        yield "without a model", "free"
        return
    yield "call" if calls == 1 else "calls", f"{calls:,} of {detail['model']}"
    yield "tokens", f"{detail['tokens_in'] + detail['tokens_out']:,}"
    cost = detail.get("cost_usd")
    yield "cost", "price not known" if cost is None else dollars(Decimal(cost))


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One activity, or several minings in a row.

    Attributes:
        folded: The summaries of the run, newest first and at most `UNFOLDED`; empty for one alone.
        more: The number of other activities in the run.
        is_cut: The run goes on before the latest `GROUPED` activities, so there are more.
    """

    summary: str
    at: datetime
    folded: tuple[str, ...] = ()
    more: int = 0
    is_cut: bool = False


def recent_activity(palace: Palace) -> list[ActivityLine]:
    """Newest first, in one query."""
    rows = fetch_rows(_LINES, [palace.pk], prepared=True)
    lines = []
    looked_at = 0
    for summaries, at, count, spoken, rooms, goes_on in rows:
        looked_at += count
        is_cut = goes_on and looked_at == GROUPED
        lines.append(_line(summaries, at, count, spoken, rooms, is_cut=is_cut))
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
