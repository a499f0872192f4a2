"""A drawer: its text with links to facts, its place, neighbours and recalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from palace.curation.trash import days_left
from palace.errors import BadPointer
from palace.models import Drawer, Entity, Evidence, Fact, Palace, RecollectionTrace
from palace.models.aaak import Pointer
from palace.queries.evidence import evidence_in, supported_facts
from palace.queries.places import find_by_pointer, with_preview
from palace.views.memory.views import show_memory
from settings_app.access import PageRequest, signed_in_page
from settings_app.rendering import render_page_or_part

# How many of the latest recalls are looked through, and how many of those that had it are named.
TRACES_SEARCHED = 200
TRACES_SHOWN = 5
MENTIONS_SHOWN = 30

_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Attributes:
        is_passage: Whether it belongs to the passage in the URL.
        is_first: Whether that passage begins here.
    """

    text: str
    is_passage: bool
    is_first: bool


@dataclass(frozen=True, slots=True)
class TextRun:
    """A run of a drawer's text that leads to one place.

    Attributes:
        url: Of the fact it supports, or of the list of facts if there are several; else empty.
        name: The facts, for the link's title.
    """

    url: str
    name: str
    pieces: tuple[Piece, ...]


@signed_in_page
def drawer_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    drawer = get_object_or_404(Drawer.objects.within(palace).with_place(), uuid=uuid)
    before, after = _neighbours(drawer)
    quotes = evidence_in(drawer)
    passage = _passage(drawer, request.GET.get("passage", ""))
    supported = supported_facts(palace, drawer, quotes)
    context = {
        "drawer": drawer,
        "days_left": days_left(drawer.trashed_at) if drawer.trashed_at else None,
        "runs": text_runs(drawer.text, quotes, passage),
        "supported": supported,
        "supported_only": [each.fact for each in supported if each.is_only],
        "before": before,
        "after": after,
        "entities": _entities(drawer),
        "traces": _traces(drawer),
    }
    return render_page_or_part(request, "palace/drawer_detail.html", "drawer", context)


@signed_in_page
def pointer(request: PageRequest, text: str = "") -> HttpResponse:
    """Redirect to the drawer of a pointer, from the path or `?p=`."""
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
    around = with_preview(
        Drawer.objects.filter(palace=drawer.palace_id)
        .kept()
        .filter(source=drawer.source, conversation=drawer.conversation)
    )
    same = Q(position=drawer.position)
    before = around.filter(Q(position__lt=drawer.position) | (same & Q(pk__lt=drawer.pk)))
    after = around.filter(Q(position__gt=drawer.position) | (same & Q(pk__gt=drawer.pk)))
    return before.order_by("-position", "-pk").first(), after.order_by("position", "pk").first()


def _passage(drawer: Drawer, asked: str) -> tuple[int, int]:
    """Start and end of the passage `START-END`; zeros if it is none."""
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
    """Recent recalls with this drawer among their hits, newest first, each question once."""
    traces = RecollectionTrace.objects.filter(palace=drawer.palace_id)
    lately = traces.order_by("-created_at", "-pk").values("pk")[:TRACES_SEARCHED]
    with_it: list[dict[str, Any]] = [{"drawer": str(drawer.uuid)}]
    found = traces.filter(pk__in=lately, hits__contains=with_it).exclude(query="")
    found = found.only("query", "created_at")
    newest = {trace.query: trace for trace in found.order_by("created_at", "pk")}
    return sorted(newest.values(), key=lambda trace: trace.created_at, reverse=True)[:TRACES_SHOWN]


def text_runs(text: str, quotes: Sequence[Evidence], passage: tuple[int, int]) -> list[TextRun]:
    """The text, cut where quotes and the passage begin and end; joined, it is the text."""
    edges = {0, len(text), *passage, *(edge for one in quotes for edge in (one.start, one.end))}
    cuts = sorted(edge for edge in edges if 0 <= edge <= len(text))
    linked = [(_link(quotes, span), _piece(text, span, passage)) for span in pairwise(cuts)]
    return [
        TextRun(url, name, tuple(piece for _, piece in group))
        for (url, name), group in groupby(linked, key=lambda pair: pair[0])
    ]


def _link(quotes: Sequence[Evidence], span: tuple[int, int]) -> tuple[str, str]:
    """URL and title of the facts that these characters support; both empty without facts."""
    facts = _once_each(one.fact for one in quotes if one.start <= span[0] and span[1] <= one.end)
    url = facts[0].get_absolute_url() if len(facts) == 1 else "#facts" if facts else ""
    return url, "; ".join(fact.text for fact in facts[:3])


def _piece(text: str, span: tuple[int, int], passage: tuple[int, int]) -> Piece:
    inside = passage[0] <= span[0] and span[1] <= passage[1]
    return Piece(text[slice(*span)], inside, inside and span[0] == passage[0])


def _once_each(facts: Iterable[Fact]) -> Sequence[Fact]:
    """One version of each memory."""
    by_memory = {fact.memory: fact for fact in facts}
    return list(by_memory.values())
