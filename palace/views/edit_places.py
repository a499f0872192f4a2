"""Edit places: rename and move rooms and closets, what a wing keeps; several selected drawers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from palace.curation.refiling import WING_GONE, BadMove, move_drawers
from palace.curation.trash import (
    Chosen,
    chosen_drawers,
    contents_of,
    drawers_in,
    moment_of,
    restore,
    trash_drawers,
)
from palace.curation.wings import (
    BadKeeping,
    Keeping,
    preview_keeping,
    rename,
    set_keeping,
    undo_keeping,
)
from palace.mining import tasks
from palace.models import Closet, Drawer, DrawerQuerySet, Palace, Room, Wing
from palace.views.activity import say_done
from palace.views.shared.query_params import find_by_uuid, way_back
from settings_app.pages import (
    NOTHING_SELECTED,
    PageRequest,
    is_stale,
    signed_in_action,
    signed_in_form,
)
from settings_app.row_tags import counted

MOST_AT_ONCE = 500
RULE_CHANGED = (
    "The rule was changed meanwhile, so nothing was saved. Its page shows what it is now; preview "
    "again to replace it."
)


@signed_in_form
def place_edit(request: PageRequest, kind: str, uuid: UUID) -> HttpResponse:
    """Rename (`name`) or move (`wing`) a room or a closet."""
    palace = Palace.objects.own(request.user)
    place = _own_place(palace, kind, uuid)
    if request.method != "POST":
        return _show(request, kind, place)
    if "wing" in request.POST:
        return _move(request, kind, place)
    return _rename(request, kind, place)


@signed_in_form
def wing_keeping(request: PageRequest, uuid: UUID) -> HttpResponse:
    """How long a wing keeps messages, and what never: a preview, then `set` with its key."""
    palace = Palace.objects.own(request.user)
    wing = get_object_or_404(Wing.objects.within(palace).select_related("palace"), uuid=uuid)
    stored = _as_form(wing)
    if request.method != "POST":
        return _show_keeping(request, wing, **stored)
    if "undo" in request.POST:
        return _undo_keeping(request, wing)
    form = {name: request.POST.get(name, "") for name in stored}
    if form != stored and is_stale(request, wing.kept_months, wing.never):
        return _show_keeping(request, wing, **form, error=RULE_CHANGED, error_in="months")
    try:
        keeping = Keeping.read(**form)
    except BadKeeping as error:
        return _show_keeping(request, wing, **form, error=str(error), error_in=error.field)
    previewed = request.POST.get("set", "")
    if previewed != keeping.key:
        going = preview_keeping(wing, keeping)
        changed = bool(previewed)
        return _show_keeping(request, wing, **form, going=going, key=keeping.key, changed=changed)
    return _set_keeping(request, wing, keeping, form)


def _set_keeping(
    request: PageRequest, wing: Wing, keeping: Keeping, form: dict[str, str]
) -> HttpResponse:
    with _locked(wing):
        before = Keeping.of(wing)
        if keeping != before and is_stale(request, wing.kept_months, wing.never):
            return _show_keeping(request, wing, **form, error=RULE_CHANGED, error_in="months")
        stored = _as_form(wing)
        batch = set_keeping(wing, keeping)
    context: dict[str, Any] = {"batch": batch, "next": wing.get_absolute_url()}
    if keeping != before:
        context |= {"wing": wing, "before": stored}
    elif batch.drawers:
        said = "Saved. What you restore goes to the trash again while this rule stands."
        messages.success(request, said)
    else:
        messages.success(request, "Saved.")
        return redirect(wing)
    # Rendering has escaped the names and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo.html", context, request))
    return redirect(wing)


def _as_form(wing: Wing) -> dict[str, str]:
    return {"months": str(wing.kept_months or ""), "never": "\n".join(wing.never)}


@contextmanager
def _locked(wing: Wing) -> Iterator[None]:
    """In the block the rule is what is stored: another tab that changes it has to wait."""
    with transaction.atomic():
        wing.palace.lock()
        wing.refresh_from_db(fields=["kept_months", "never"])
        yield


def _undo_keeping(request: PageRequest, wing: Wing) -> HttpResponse:
    """The rule as it was, and back in place what went to the trash when it was changed."""
    key = request.POST["undo"]
    at = moment_of(int(key)) if key.isascii() and key.isdigit() and len(key) <= 20 else None
    if at is None:
        raise Http404
    try:
        before = Keeping.read(request.POST.get("months", ""), request.POST.get("never", ""))
    except BadKeeping:
        raise Http404 from None
    with _locked(wing):
        if is_stale(request, wing.kept_months, wing.never):
            messages.info(request, "The rule was changed since, so nothing was undone.")
            return redirect(wing)
        restored = undo_keeping(wing, before, at)
    tasks.enqueue_mining(restored.unmined)
    said = "Undone: the rule is as it was before"
    if restored.drawers:
        are = "is" if restored.drawers == 1 else "are"
        said += f", and {counted(restored.drawers, 'message')} {are} back in place"
    messages.success(request, f"{said}.")
    return redirect(wing)


def _show_keeping(request: PageRequest, wing: Wing, **form: Any) -> HttpResponse:
    status = 400 if "error" in form else 200
    return render(request, "palace/wing_keeping.html", {"wing": wing, **form}, status=status)


def _rename(request: PageRequest, kind: str, place: Room | Closet) -> HttpResponse:
    name = request.POST.get("name", "")
    if name != place.title and is_stale(request, place.title):
        messages.info(request, f"It is called “{place.title}” since, so nothing was undone.")
        return redirect(place)
    try:
        before = rename(place, name)
    except BadMove as error:
        return _show(request, kind, place, name=name, error=str(error))
    if request.POST.get("undo"):
        messages.success(request, "Undone.")
    elif before != place.title:
        said = f"“{before}” is called “{place.title}” now."
        _offer_undo(request, said, kind, place, name=before, made=place.title)
    return redirect(place)


def _move(request: PageRequest, kind: str, place: Room | Closet) -> HttpResponse:
    wings = Wing.objects.within(place.palace)
    wing = find_by_uuid(wings, request.POST["wing"])
    room = place if isinstance(place, Room) else place.room
    before = room.wing
    if wing is None:
        return _show(request, kind, place, move_error=WING_GONE)
    if wing.pk == before.pk:
        return redirect(place)
    try:
        activity = move_drawers(place.palace, drawers_in(place), wing)
    except BadMove as error:
        return _show(request, kind, place, move_error=str(error))
    say_done(request, f"Moved to “{wing.name}”.", activity)
    return redirect(_place_now(place, wing))


def _place_now(place: Room | Closet, wing: Wing) -> Room | Closet | Wing:
    """Where it is after a move to the wing: what was joined with another place is gone."""
    if isinstance(place, Room):
        rooms = Room.objects.within(place.palace).filter(wing=wing)
        return rooms.filter(source=place.source, external_id=place.external_id).first() or wing
    return Closet.objects.within(place.palace).filter(pk=place.pk).first() or wing


def _own_place(palace: Palace, kind: str, uuid: UUID) -> Room | Closet:
    if kind == "room":
        rooms = Room.objects.within(palace).select_related("wing", "palace")
        return get_object_or_404(rooms, uuid=uuid)
    if kind == "closet":
        closets = Closet.objects.within(palace).select_related("room__wing", "palace")
        return get_object_or_404(closets, uuid=uuid)
    raise Http404


def _show(request: PageRequest, kind: str, place: Room | Closet, **form: Any) -> HttpResponse:
    room = place if isinstance(place, Room) else place.room
    wings = Wing.objects.within(place.palace).exclude(number=Wing.UNSORTED)
    others = sorted(wings.exclude(pk=room.wing_id), key=lambda wing: wing.name.casefold())
    context = {"kind": kind, "place": place, "name": place.title, "wings": others, **form}
    bad = "error" in form or "move_error" in form
    return render(request, "palace/place_edit.html", context, status=400 if bad else 200)


def _offer_undo(
    request: PageRequest, said: str, kind: str, place: Room | Closet, **before: Any
) -> None:
    address = reverse("place_edit", args=[kind, place.uuid])
    context = {"said": said, "address": address, **before}
    # Rendering has escaped the names and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo_rename.html", context, request))


@signed_in_action
def selected(request: PageRequest) -> HttpResponse:
    """Do one thing (`do`) to the ticked `drawer`s, and the drawers of `closet`s and `room`s."""
    palace = Palace.objects.own(request.user)
    do, chosen = request.POST.get("do", ""), _chosen(request)
    if not chosen:
        messages.error(request, NOTHING_SELECTED)
    elif len(chosen) > MOST_AT_ONCE:
        messages.error(request, f"At most {MOST_AT_ONCE} can be selected at once. Select fewer.")
    elif do in ACTIONS:
        return ACTIONS[do](request, palace, _drawers(palace, chosen))
    return _back(request)


def _trash_selected(request: PageRequest, palace: Palace, drawers: DrawerQuerySet) -> HttpResponse:
    batch = trash_drawers(palace, drawers)
    if batch.drawers:
        context = {"batch": batch, "next": way_back(request)}
        # Rendering has marked the text as safe; it has figures and addresses only.
        messages.success(request, render_to_string("palace/_undo.html", context, request))
    else:
        messages.info(request, "There was nothing to move: it is in the trash already.")
    return _back(request)


def _restore_selected(
    request: PageRequest, palace: Palace, drawers: DrawerQuerySet
) -> HttpResponse:
    restored = restore(palace, drawers)
    tasks.enqueue_mining(restored.unmined)
    messages.success(request, f"{counted(restored.drawers, 'message')} restored.")
    return _back(request)


def _move_selected(request: PageRequest, palace: Palace, drawers: DrawerQuerySet) -> HttpResponse:
    if "wing" not in request.POST:
        return _ask_where(request, palace, drawers)
    wing = find_by_uuid(Wing.objects.within(palace), request.POST["wing"])
    if wing is None:
        messages.error(request, WING_GONE)
        return _ask_where(request, palace, drawers)
    count = drawers.kept().exclude(room__wing=wing).count()
    if not count:
        is_there = drawers.kept().exists()
        where = f"all of it is in “{wing.name}” already" if is_there else "it is in the trash"
        messages.info(request, f"There was nothing to move: {where}.")
        return redirect(wing)
    try:
        activity = move_drawers(palace, drawers.kept(), wing)
    except BadMove as error:
        messages.error(request, str(error))
        return _back(request)
    say_done(request, f"Moved {counted(count, 'message')} to “{wing.name}”.", activity)
    return redirect(wing)


def _ask_where(request: PageRequest, palace: Palace, drawers: DrawerQuerySet) -> HttpResponse:
    wings = Wing.objects.within(palace).exclude(number=Wing.UNSORTED)
    context = {
        "going": contents_of(palace, drawers),
        "chosen": _chosen(request),
        "wings": sorted(wings, key=lambda wing: wing.name.casefold()),
        "next": way_back(request),
    }
    return render(request, "palace/selected_move.html", context)


def _chosen(request: PageRequest) -> Chosen:
    """Field and id of each ticked row.

    Raises:
        Http404: a value is no id.
    """
    try:
        sent = request.POST
        kinds = ("drawer", "closet", "room")
        return [(name, UUID(one)) for name in kinds for one in sent.getlist(name)]
    except ValueError:
        raise Http404 from None


def _drawers(palace: Palace, chosen: Chosen) -> DrawerQuerySet:
    """
    Raises:
        Http404: none of them is in this palace.
    """
    keys = list(chosen_drawers(palace, chosen).order_by().values_list("pk", flat=True))
    if not keys:
        raise Http404
    return Drawer.objects.within(palace).filter(pk__in=keys)


def _back(request: PageRequest) -> HttpResponse:
    return redirect(way_back(request) or "memory")


ACTIONS: dict[str, Callable[[PageRequest, Palace, DrawerQuerySet], HttpResponse]] = {
    "trash": _trash_selected,
    "restore": _restore_selected,
    "move": _move_selected,
}
