"""A drawer: the words as they were said, and where they stand."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from palace.aaak import Pointer
from palace.curation.trash import days_left
from palace.errors import BadPointer
from palace.models import Drawer, Entity, Palace, RecollectionTrace
from palace.queries.evidence import evidence_in, resting_on_it, stretches
from palace.queries.places import find_by_pointer, with_preview
from palace.views.memory.views import show_memory
from settings_app.access import PageRequest, signed_in_page
from settings_app.rendering import render_page_or_part

# How many of the latest recalls are looked through, and how many of those that had it are named.
TRACES_SEARCHED = 200
TRACES_SHOWN = 5
MENTIONS_SHOWN = 30

_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


@signed_in_page
def drawer_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    drawer = get_object_or_404(Drawer.objects.within(palace).with_place(), uuid=uuid)
    before, after = _neighbours(drawer)
    words = evidence_in(drawer)
    passage = _passage(drawer, request.GET.get("passage", ""))
    resting = resting_on_it(palace, drawer, words)
    context = {
        "drawer": drawer,
        "days_left": days_left(drawer.trashed_at) if drawer.trashed_at else None,
        "stretches": stretches(drawer.text, words, passage),
        "resting": resting,
        "resting_only": [each.fact for each in resting if each.is_only],
        "before": before,
        "after": after,
        "entities": _entities(drawer),
        "traces": _traces(drawer),
    }
    return render_page_or_part(request, "palace/drawer_detail.html", "drawer", context)


@signed_in_page
def pointer(request: PageRequest, text: str = "") -> HttpResponse:
    """Leads to the drawer of a pointer given in the address or as `?p=`."""
    palace = Palace.objects.own(request.user)
    text = text or request.GET.get("p", "")
    try:
        drawer = find_by_pointer(palace, Pointer.parse(text))
    except BadPointer as error:
        return show_memory(request, palace, query=text, error=str(error))
    if drawer is None:
        raise Http404
    return redirect(drawer)


def _neighbours(drawer: Drawer) -> tuple[Drawer | None, Drawer | None]:
    """The messages just before and after it in its conversation."""
    held = with_preview(
        Drawer.objects.filter(palace=drawer.palace_id)
        .kept()
        .filter(source=drawer.source, conversation=drawer.conversation)
    )
    same = Q(position=drawer.position)
    before = held.filter(Q(position__lt=drawer.position) | (same & Q(pk__lt=drawer.pk)))
    after = held.filter(Q(position__gt=drawer.position) | (same & Q(pk__gt=drawer.pk)))
    return before.order_by("-position", "-pk").first(), after.order_by("position", "pk").first()


def _passage(drawer: Drawer, asked: str) -> tuple[int, int]:
    """Where the passage `START-END` begins and ends; nothing where that is none."""
    span = _SPAN.fullmatch(asked)
    start, end = map(int, span.groups()) if span else (0, 0)
    if start >= end or (start == 0 and end >= len(drawer.text)):
        return 0, 0  # Marking everything marks nothing.
    return start, min(end, len(drawer.text))


def _entities(drawer: Drawer) -> list[Entity]:
    mentioned = Entity.objects.filter(
        palace=drawer.palace_id, mentions__palace=drawer.palace_id, mentions__drawer=drawer
    )
    return list(mentioned.distinct().order_by("kind", "name")[:MENTIONS_SHOWN])


def _traces(drawer: Drawer) -> list[RecollectionTrace]:
    """The recalls that lately brought it up, newest first, each question once."""
    traces = RecollectionTrace.objects.filter(palace=drawer.palace_id)
    lately = traces.order_by("-created_at", "-pk").values("pk")[:TRACES_SEARCHED]
    held: list[dict[str, Any]] = [{"drawer": str(drawer.uuid)}]
    found = traces.filter(pk__in=lately, hits__contains=held).exclude(query="")
    found = found.only("query", "created_at")
    newest = {trace.query: trace for trace in found.order_by("created_at", "pk")}
    return sorted(newest.values(), key=lambda trace: trace.created_at, reverse=True)[:TRACES_SHOWN]
