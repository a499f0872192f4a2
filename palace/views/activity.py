"""The activity log: each entry with its figures and a link to what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from palace.models import Activity, ImportJob, Palace, Proposal, Room, Wing
from palace.views.shared.pagination import CountedPage
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page
from settings_app.row_tags import dollars

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


UNDOES = {
    Activity.Kind.DRAWERS_MOVED: "move_undo",
    Activity.Kind.WINGS_MERGED: "wing_merge_undo",
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
        """The address that undoes it; empty if nothing does."""
        name = UNDOES.get(Activity.Kind(self.activity.kind), "")
        can = name and "undo" in self.activity.detail
        return reverse(name, args=[self.activity.uuid]) if can else ""


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
    if applied := detail.get("applied"):
        yield "applied automatically", f"{applied:,}"
    yield from _costs(detail)


def dream_place(activity: Activity) -> tuple[str, str] | None:
    """Label and URL of the dream's proposals."""
    if not activity.detail.get("proposed"):
        return None
    return "See what it proposed", f"{reverse('inbox')}?dream={activity.uuid}"


def _costs(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    calls = detail.get("calls", 0)
    if not detail.get("model"):
        yield "by the local rules", "free"
        return
    yield "call" if calls == 1 else "calls", f"{calls:,} of {detail['model']}"
    yield "tokens", f"{detail['tokens_in'] + detail['tokens_out']:,}"
    cost = detail.get("cost_usd")
    yield "cost", "price not known" if cost is None else dollars(Decimal(cost))
