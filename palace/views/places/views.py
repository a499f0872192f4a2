"""Wing, room and closet: a page each, also a branch of the tree; wings are edited and merged."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from palace.curation.trash import drawers_in
from palace.curation.wings import BadWing, NameTaken, change_wing, merge_wings, preview_merge
from palace.models import Closet, Palace, Room, Wing
from palace.queries.places import closet_rows, closets_of, drawers_of, loose_drawers_of, rooms_of
from palace.templatetags.palace_tags import counted
from palace.views.episodes import episodes_of
from palace.views.shared.pagination import PAGE_SIZE, CountedPage
from palace.views.shared.query_params import get_by_uuid
from settings_app.access import PageRequest, signed_in_form, signed_in_page
from settings_app.rendering import render_page_or_part

UNSORTED_STAYS = "The unsorted wing keeps its name: conversations wait there until they are mined."


@signed_in_page
def wing_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    wing = get_object_or_404(Wing.objects.within(palace), uuid=uuid)
    rooms = CountedPage(rooms_of(wing), request.GET.get("page"))
    drawers = drawers_in(wing).kept().count()
    context = {"wing": wing, "rooms": rooms, "drawers_total": drawers}
    return render_page_or_part(request, "palace/wing_detail.html", "rooms", context)


@signed_in_page
def room_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    room = get_object_or_404(Room.objects.within(palace).select_related("wing"), uuid=uuid)
    closets = CountedPage(closets_of(room), request.GET.get("page"))
    loose = CountedPage(loose_drawers_of(room), request.GET.get("loose"))
    # As a branch of the tree a room shows closed closets, as a page what is in them.
    rows = closet_rows(room, closets.rows, at_most=0 if request.htmx else PAGE_SIZE)
    context = {
        "room": room,
        "closets": closets,
        "rows": rows,
        "loose": loose,
        "drawers_total": drawers_in(room).kept().count(),
        # A branch of the tree has no place for them.
        "episodes": [] if request.htmx else episodes_of(palace, room),
    }
    part = "loose" if "loose" in request.GET else "contents"
    return render_page_or_part(request, "palace/room_detail.html", part, context)


@signed_in_page
def closet_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    closets = Closet.objects.within(palace).select_related("room__wing")
    closet = get_object_or_404(closets, uuid=uuid)
    drawers = CountedPage(drawers_of(closet), request.GET.get("page"))
    context = {"closet": closet, "drawers": drawers, "drawers_total": drawers.total}
    return render_page_or_part(request, "palace/closet_detail.html", "drawers", context)


@signed_in_form
def wing_edit(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Edit the name and kind of a wing, or choose another to merge it with."""
    wing = _own_wing(request, uuid)
    if wing.number == Wing.UNSORTED:
        messages.error(request, UNSORTED_STAYS)
        return redirect(wing)
    if request.method != "POST":
        return _show_form(request, wing, name=wing.name, kind=wing.kind)
    name, kind = request.POST.get("name", ""), request.POST.get("kind", "")
    try:
        changed = change_wing(wing, name=name, kind=kind)
    except NameTaken as taken:
        return _show_form(request, wing, name=name, kind=kind, error=str(taken), taken_by=taken.by)
    except BadWing as error:
        return _show_form(request, wing, name=name, kind=kind, error=str(error))
    renamed = " What is said about its old name still comes here." * (changed.name != wing.name)
    messages.success(request, f"Saved.{renamed}")
    return redirect(wing)


@signed_in_form
def wing_merge(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Confirm, then merge a wing into another."""
    wing = _own_wing(request, uuid)
    chosen = (request.POST if request.method == "POST" else request.GET).get("into", "")
    if not chosen:
        error = "Choose the wing it becomes part of."
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=error)
    into = _own_wing(request, chosen)
    try:
        if request.method != "POST":
            context = {"wing": wing, "plan": preview_merge(wing, into)}
            return render(request, "palace/wing_merge.html", context)
        merged = merge_wings(wing, into)
    except BadWing as error:
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=str(error))
    rooms, drawers = counted(merged.rooms, "room"), counted(merged.drawers, "drawer")
    messages.success(request, f"“{wing.name}” is part of this wing now: {rooms}, {drawers} moved.")
    return redirect(merged.into)


def _own_wing(request: PageRequest, uuid: UUID | str) -> Wing:
    palace = Palace.objects.own(request.user)
    return get_by_uuid(Wing.objects.within(palace).select_related("palace"), str(uuid))


def _show_form(request: PageRequest, wing: Wing, **filled: Any) -> HttpResponse:
    others = Wing.objects.within(wing.palace).exclude(number=Wing.UNSORTED).exclude(pk=wing.pk)
    context = {
        "wing": wing,
        "kinds": Wing.Kind.choices,
        "others": sorted(others, key=lambda other: other.name.casefold()),
        **filled,
    }
    bad = "error" in filled or "merge_error" in filled
    return render(request, "palace/wing_edit.html", context, status=400 if bad else 200)
