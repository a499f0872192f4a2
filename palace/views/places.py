"""Wings, rooms, closets and drawers, a page each; wings are edited and merged.

htmx gets the pages of wings, rooms and closets as branches of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import SafeString, mark_safe

from isolation.raw_sql import all_but, columns, fetch_rows, read_instance
from language.english.grammatical_person import to_second_person
from language.errors import BadPointer
from palace.curation.refiling import WING_GONE
from palace.curation.trash import days_left
from palace.curation.wings import (
    BadWing,
    NameTaken,
    change_wing,
    merge_wings,
    preview_merge,
)
from palace.models import (
    Closet,
    Drawer,
    Entity,
    Evidence,
    Fact,
    Palace,
    Pointer,
    RecollectionTrace,
    Room,
    Wing,
)
from palace.queries.facts import evidence_in, supported_facts
from palace.queries.places import (
    PREVIEW_LENGTH,
    closet_rows,
    closets_of,
    drawers_of,
    find_by_pointer,
    loose_drawers_of,
    rooms_of,
    wing_row,
)
from palace.queries.timeline import happenings_in
from palace.views.activity import say_done
from palace.views.memory import show_memory
from palace.views.shared.moments import rows_until, story_page
from palace.views.shared.palace_tags import icon
from palace.views.shared.place_parts import wing_plan
from palace.views.shared.query_params import PAGE_SIZE, CountedPage, find_by_uuid, get_by_uuid
from palace.views.working_and_episodes import episodes_of
from settings_app.fast_reverse import address_of
from settings_app.pages import (
    PageRequest,
    is_stale,
    render_page_or_part,
    signed_in_form,
    signed_in_page,
    wants_part,
)
from settings_app.row_tags import counted

# The number of recent recalls searched, and of those shown that had the drawer.
TRACES_SEARCHED = 200
TRACES_SHOWN = 5
MENTIONS_SHOWN = 30
_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
UNSORTED_STAYS = "The unsorted wing keeps its name: conversations wait there until they are mined."
# What a drawer's page shows of the messages beside it.
_BESIDE = all_but(Drawer, "id uuid palace_id role speaker")
_SAID_BESIDE = f"""
    left(text, {PREVIEW_LENGTH}), {columns(Drawer, "d", _BESIDE)} FROM palace_drawer d
    WHERE palace_id = %(palace)s AND source = %(source)s AND conversation = %(conversation)s
        AND trashed_at IS NULL
"""
_AROUND = f"""
(SELECT 'before', {_SAID_BESIDE} AND (position, id) < (%(position)s, %(key)s)
ORDER BY position DESC, id DESC LIMIT 1) UNION ALL
(SELECT 'after', {_SAID_BESIDE} AND (position, id) > (%(position)s, %(key)s)
ORDER BY position, id LIMIT 1)
"""


@signed_in_page
def wing_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    wing = get_object_or_404(Wing.objects.within(palace), uuid=uuid)
    wing.palace = palace  # Else it would be read once more.
    row = wing_row(wing)
    rooms = CountedPage(rooms_of(wing), request.GET.get("page"), total=row.rooms)
    context = {"wing": wing, "rooms": rooms, "drawers_total": row.drawers}
    if not wants_part(request):  # A branch of the tree has no place for it.
        context |= wing_plan(palace, row, request.GET.get("floor", ""))
    return render_page_or_part(request, "palace/wing_detail.html", "rooms", context)


@signed_in_page
def wing_timeline(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Its conversations and what was learnt from them, the latest first, by year."""
    palace = Palace.objects.own(request.user)
    wing = get_object_or_404(Wing.objects.within(palace), uuid=uuid)
    number = request.GET.get("story")
    found = happenings_in(wing, at_most=rows_until(number))
    context = {"wing": wing, **story_page(palace, found, number)}
    return render_page_or_part(request, "palace/wing_timeline.html", "story", context)


@signed_in_page
def room_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    palace = Palace.objects.own(request.user)
    room = get_object_or_404(Room.objects.within(palace).select_related("wing"), uuid=uuid)
    closets = CountedPage(closets_of(room), request.GET.get("page"))
    loose = CountedPage(loose_drawers_of(room), request.GET.get("loose"))
    is_branch = wants_part(request)
    # A branch of the tree shows closed closets; the page shows their contents.
    rows = closet_rows(room, closets.rows, at_most=0 if is_branch else PAGE_SIZE)
    context = {
        "room": room,
        "closets": closets,
        "rows": rows,
        "loose": loose,
        "drawers_total": room.kept_count,
        # A branch of the tree has no place for them.
        "episodes": [] if is_branch else episodes_of(palace, room),
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
    is_new = (name, kind) != (wing.name, wing.kind)
    if is_new and is_stale(request, wing.name, wing.kind):
        now = f"“{wing.name}”, {wing.get_kind_display().lower()},"
        error = f"It was changed meanwhile: it is {now} now. Save again to replace that."
        return _show_form(request, wing, name=name, kind=kind, error=error)
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
    if request.method != "POST" and "into" not in request.GET:
        return redirect("wing_edit", wing.uuid)
    if not chosen:
        error = "Choose the wing it becomes part of."
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=error)
    into = find_by_uuid(Wing.objects.within(wing.palace).select_related("palace"), chosen)
    if into is None:
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=WING_GONE)
    try:
        if request.method != "POST":
            context = {"wing": wing, "plan": preview_merge(wing, into)}
            return render(request, "palace/wing_merge.html", context)
        merged = merge_wings(wing, into)
    except BadWing as error:
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=str(error))
    rooms, drawers = counted(merged.rooms, "room"), counted(merged.drawers, "drawer")
    said = f"“{wing.name}” is part of this wing now: {rooms}, {drawers} moved."
    say_done(request, said, merged.activity)
    return redirect(merged.into)


def _own_wing(request: PageRequest, uuid: UUID) -> Wing:
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
        url: The fact it supports, or the list of facts if there are several; else empty.
        name: The facts, as the link's title.
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
        "ways_out": ways_out(drawer, get_token(request)) if drawer.trashed_at else "",
        "runs": text_runs(drawer.text, quotes, passage),
        "supported": supported,
        "supported_only": [each.fact for each in supported if each.is_only],
        "before": before,
        "after": after,
        "entities": _entities(drawer),
        "traces": _traces(drawer),
    }
    return render_page_or_part(request, "palace/drawer_detail.html", "drawer", context)


def ways_out(drawer: Drawer, token: str, here: str = "") -> SafeString:
    """Forms that restore a drawer of the trash and that purge it.

    Args:
        token: Against forged requests.
        here: The page that restoring leads back to; else the drawer's own.
    """
    pointer = str(drawer.pointer)
    against = f'<input type="hidden" name="csrfmiddlewaretoken" value="{token}">\n'
    back = f'<input type="hidden" name="next" value="{here}">\n' if here else ""
    return mark_safe(  # noqa: S308 - addresses and numbers.
        '<div class="actions ways-out">\n'
        f'<form method="post" action="{address_of("restore_drawer", drawer.uuid)}">\n'
        f'{against}{back}<button class="quiet" type="submit" aria-label="Restore {pointer}">'
        f"{icon('back')}<span>Restore</span></button>\n</form>\n"
        f'<details class="for-good">\n<summary aria-label="Delete for good: {pointer}">'
        f"{icon('chevron')}<span>Delete for good</span></summary>\n"
        f'<form method="post" action="{address_of("purge_drawer", drawer.uuid)}">\n'
        f"{against}<p>Its words cannot be brought back.</p>\n"
        f'<button class="danger" type="submit" aria-label="Delete it now: {pointer}">'
        "Delete it now</button>\n</form>\n</details>\n</div>\n"
    )


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
    given = {
        "palace": drawer.palace_id,
        "source": drawer.source,
        "conversation": drawer.conversation,
        "position": drawer.position,
        "key": drawer.pk,
    }
    found: dict[str, Drawer | None] = {}
    for side, preview, *values in fetch_rows(_AROUND, given, prepared=True):
        neighbour = read_instance(Drawer, iter(values), _BESIDE)
        setattr(neighbour, "preview", preview)  # noqa: B010 - the model has no such field.
        found[side] = neighbour
    return found.get("before"), found.get("after")


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
    """Cut the text where quotes and the passage begin and end; the runs joined are the text."""
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
    return url, "; ".join(to_second_person(fact.text) for fact in facts[:3])


def _piece(text: str, span: tuple[int, int], passage: tuple[int, int]) -> Piece:
    inside = passage[0] <= span[0] and span[1] <= passage[1]
    return Piece(text[slice(*span)], inside, inside and span[0] == passage[0])


def _once_each(facts: Iterable[Fact]) -> Sequence[Fact]:
    """One version of each memory."""
    by_memory = {fact.memory: fact for fact in facts}
    return list(by_memory.values())
