"""Rooms to review: of a project or an area elsewhere, not filed, not embedded, never recalled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from language.slugs import slug_of
from palace.curation.refiling import WING_GONE, BadMove, move_drawers
from palace.curation.trash import drawers_in, move_to_trash
from palace.mining import tasks
from palace.mining.pipeline import make_wing, suggested_rooms, suggested_wings
from palace.models import Palace, Room, Wing
from palace.queries.places import unembedded_rooms, unfiled_rooms, unrecalled_rooms
from palace.storage import enqueue_embedding
from palace.views.activity import undo_address
from palace.views.inbox.filters import ROOMS
from palace.views.shared.query_params import find_by_uuid
from settings_app.pages import PageRequest, signed_in_action
from settings_app.row_tags import counted

SHOWN = 8
# Mining and embedding take a while; nobody has to look after what is just under way.
WAITING_FOR = timedelta(minutes=15)
NEVER_RECALLED_FOR = timedelta(days=180)
MOVED = "That is no longer suggested: it was moved, or that was rejected meanwhile."
ELSEWHERE = "No wing is suggested for it any more: it was moved, or that was rejected meanwhile."


@dataclass(frozen=True, slots=True)
class RoomGroup:
    """Rooms that need the same.

    Attributes:
        do: The action of the key `a`.
        has_more: There are more than are shown.
    """

    name: str
    title: str
    do: str
    rooms: list[Room]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to a room.

    Attributes:
        undo: The address that undoes it; empty if none does.
    """

    said: str
    undo: str = ""


def rooms_to_review(palace: Palace) -> dict[str, Any]:
    """What `_review_rooms.html` shows.

    These are the suggested wings, the groups with rooms, and the wings to file these in. The tab
    of rooms lists the rejected areas, too.
    """
    groups = _groups(palace)
    is_unfiled = any(group.name == "unfiled" for group in groups)
    suggested = suggested_wings(palace)
    return {
        "suggested_wings": suggested[:SHOWN],
        "has_more_wings": len(suggested) > SHOWN,
        "rejected_areas": [(area, slug_of(area)) for area in rejected_areas(palace)],
        "rooms": groups,
        "wings": _wings(palace) if is_unfiled else [],
    }


def _groups(palace: Palace) -> list[RoomGroup]:
    now = timezone.now()
    found = (
        ("unfiled", "Not filed yet", "file", unfiled_rooms(palace, now - WAITING_FOR)),
        ("project", "About a project", "join", suggested_rooms(palace)),
        ("unembedded", "Found by words only", "embed", unembedded_rooms(palace)),
        (
            "unrecalled",
            "Never recalled",
            "keep",
            unrecalled_rooms(palace, now - NEVER_RECALLED_FOR),
        ),
    )
    groups = []
    for name, title, do, rows in found:
        rooms = list(rows[: SHOWN + 1])
        if rooms:
            groups.append(RoomGroup(name, title, do, rooms[:SHOWN], len(rooms) > SHOWN))
    return groups


def _wings(palace: Palace) -> list[Wing]:
    """The wings into which a room can be filed, by name."""
    wings = Wing.objects.within(palace).exclude(number=Wing.UNSORTED)
    return sorted(wings, key=lambda wing: wing.name.casefold())


@signed_in_action
def review_room(request: PageRequest, uuid: UUID, do: str) -> HttpResponse:
    """Do one thing to a room; htmx gets the row that says so, with its undo."""
    palace = Palace.objects.own(request.user)
    rooms = Room.objects.within(palace).select_related("wing", "palace")
    room = get_object_or_404(rooms, uuid=uuid)
    if do not in ACTIONS:
        raise Http404
    context = {"room": room, "done": ACTIONS[do](request, room)}
    if request.htmx:
        return render(request, "palace/_room_reviewed.html", context)
    # Rendering has escaped the room's title and marked the text as safe.
    said = render_to_string("palace/_undo_review.html", context, request)
    messages.success(request, said)
    return redirect(f"{reverse('inbox')}?show={ROOMS}")


def _file(request: PageRequest, room: Room) -> Done:
    wings = Wing.objects.within(room.palace).exclude(number=Wing.UNSORTED)
    wing = find_by_uuid(wings, request.POST.get("wing", ""))
    if wing is None:
        return Done(WING_GONE)
    try:
        return _filed(room, wing)
    except BadMove as error:
        return Done(str(error))


def _filed(room: Room, wing: Wing) -> Done:
    activity = move_drawers(room.palace, drawers_in(room), wing)
    return Done(f"Filed under “{wing.name}”.", undo_address(activity) if activity else "")


def _mine(_request: PageRequest, room: Room) -> Done:
    tasks.enqueue_mining([room.pk])
    return Done("Loci tries again to file it; that takes a moment.")


def _embed(_request: PageRequest, _room: Room) -> Done:
    enqueue_embedding()
    return Done("Loci tries again; that takes a moment.")


def _keep(_request: PageRequest, room: Room) -> Done:
    _set_reviewed(room, is_reviewed=True)
    undo = reverse("review_room", args=[room.uuid, "ask"])
    return Done("Kept. Loci does not ask about it again.", undo)


def _ask(_request: PageRequest, room: Room) -> Done:
    _set_reviewed(room, is_reviewed=False)
    return Done("It is to be reviewed again.")


def _trash(_request: PageRequest, room: Room) -> Done:
    batch = move_to_trash(room)
    if not batch.drawers:
        return Done("It is in the trash already.")
    undo = reverse("restore_batch", args=[batch.key])
    return Done(f"Moved {counted(batch.drawers, 'message')} to the trash.", undo)


@transaction.atomic
def _join(_request: PageRequest, room: Room) -> Done:
    """File it with the project that a dream found it to be about."""
    room.palace.lock()
    suggested = suggested_rooms(room.palace).filter(pk=room.pk)
    wing = Wing.objects.within(room.palace).filter(pk__in=suggested.values("project")).first()
    if wing is None:
        return Done(MOVED)
    # First, so that an undo leaves it where it is now for good.
    _set_settled(room, is_settled=True)
    return _filed(room, wing)


@transaction.atomic
def _stay(_request: PageRequest, room: Room) -> Done:
    room.palace.lock()
    if not suggested_rooms(room.palace).filter(pk=room.pk).exists():
        return Done(MOVED)
    _set_settled(room, is_settled=True)
    undo = reverse("review_room", args=[room.uuid, "unsettle"])
    return Done("It stays where it is. Loci does not suggest a project for it again.", undo)


def _unsettle(_request: PageRequest, room: Room) -> Done:
    _set_settled(room, is_settled=False)
    return Done("Its project may be suggested again.")


def _make_wing(_request: PageRequest, room: Room) -> Done:
    activity = make_wing(room.palace, room.area) if room.area else None
    if activity is None:
        return Done(ELSEWHERE)
    wing = Wing.objects.within(room.palace).get(uuid=activity.detail["wing"])
    return Done(f"Filed under “{wing.name}”.", undo_address(activity))


@transaction.atomic
def _reject_wing(_request: PageRequest, room: Room) -> Done:
    room.palace.lock()
    # Its wing may be there since the page was shown.
    if room.area not in {suggested.area for suggested in suggested_wings(room.palace)}:
        return Done(ELSEWHERE)
    room.palace.reject_areas([room.area])
    undo = reverse("suggest_area", args=[slug_of(room.area)])
    return Done(f"No wing “{room.area}”: Loci does not suggest it again.", undo)


@signed_in_action
@transaction.atomic
def suggest_area(request: PageRequest, slug: str) -> HttpResponse:
    """Let an area of life that was rejected have a wing again."""
    palace = Palace.objects.own(request.user)
    palace.lock()
    again = [area for area in rejected_areas(palace) if slug_of(area) == slug]
    palace.reject_areas(again, are_rejected=False)
    for area in again:
        messages.success(request, f"A wing “{area}” may be suggested or made again.")
    return redirect(f"{reverse('inbox')}?show={ROOMS}")


def rejected_areas(palace: Palace) -> list[str]:
    """The areas of life that get no wing by rules, read again."""
    return Palace.objects.values_list("rejected_areas", flat=True).get(pk=palace.pk)


def _set_settled(room: Room, *, is_settled: bool) -> None:
    Room.objects.within(room.palace).filter(pk=room.pk).update(is_settled=is_settled)


def _set_reviewed(room: Room, *, is_reviewed: bool) -> None:
    rows = Room.objects.within(room.palace).filter(pk=room.pk)
    rows.update(reviewed_at=timezone.now() if is_reviewed else None)


ACTIONS: dict[str, Callable[[PageRequest, Room], Done]] = {
    "file": _file,
    "mine": _mine,
    "embed": _embed,
    "keep": _keep,
    "ask": _ask,
    "trash": _trash,
    "join": _join,
    "stay": _stay,
    "unsettle": _unsettle,
    "make-wing": _make_wing,
    "reject-wing": _reject_wing,
}
