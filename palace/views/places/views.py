"""Wing, room and closet: a page each, whose list is also a branch of the tree."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from palace.curation.trash import drawers_in
from palace.models import Closet, Palace, Room, Wing
from palace.queries.places import closet_rows, closets_of, drawers_of, loose_drawers_of, rooms_of
from palace.views.episodes import episodes_of
from palace.views.shared.pagination import PAGE_SIZE, CountedPage
from settings_app.access import PageRequest, signed_in_page
from settings_app.rendering import render_page_or_part


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
