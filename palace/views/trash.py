"""The trash: move drawers there, with a preview of what goes along, restore or purge them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import Http404, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from kombu.exceptions import OperationalError

from palace.curation import deletion
from palace.curation.trash import (
    Batch,
    Contents,
    Place,
    Restored,
    batch_key,
    batch_of,
    contents_of,
    days_left,
    drawers_in,
    moment_of,
    move_to_trash,
    restore,
    up_to,
    was_batch,
)
from palace.mining.tasks import enqueue_mining
from palace.models import Activity, Closet, Drawer, DrawerQuerySet, Fact, Palace, Room, Wing
from palace.queries.places import shown_drawers, with_preview
from palace.views.places import ways_out
from palace.views.shared.palace_tags import excerpt, said_by
from palace.views.shared.place_parts import counts_beside
from palace.views.shared.query_params import CountedPage, way_back
from settings_app.fast_reverse import address_of
from settings_app.pages import (
    PageRequest,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
)
from settings_app.row_tags import at_minute, counted

# The most facts named; the others are counted.
NAMED = 12
NOTHING_TO_UNDO = (
    "There is nothing left to undo: what went to the trash then was restored already, "
    "or deleted for good."
)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """The drawers of a batch that are on this page of the trash.

    Attributes:
        total: The drawers of the batch in the trash, on all pages.
        days_left: Days until the purge, rounded up; 0 when it is due.
        leaves: Its drawers as items of a list, in one piece: a page has thirty.
        lost: The facts that went with them; None without any.
    """

    at: datetime
    key: int
    total: int
    days_left: int
    leaves: SafeString
    lost: LostFacts | None


@signed_in_page
def trash(request: PageRequest) -> HttpResponse:
    """The trash, newest first, in batches that went there together."""
    palace = Palace.objects.own(request.user)
    drawers = CountedPage(_in_order(palace), request.GET.get("page"))
    batches = _batches(palace, _read(palace, drawers.rows), get_token(request))
    context = {"drawers": drawers, "batches": batches}
    return render_page_or_part(request, "palace/trash.html", "batches", context)


@signed_in_form
def trash_place(request: PageRequest, kind: str, uuid: UUID) -> HttpResponse:
    """Confirm, then move a place with all its drawers to the trash."""
    place = _own_place(request, kind, uuid)
    if request.method != "POST":
        return _ask(request, kind, place)
    batch = move_to_trash(place)
    if request.htmx and isinstance(place, Drawer):
        return _leaf_is_gone(request, place, batch)
    if batch.drawers:
        _offer_undo(request, batch, place)
    else:
        messages.info(request, "There was nothing to move: it is in the trash already.")
    return redirect(way_back(request) or _nearest(place))


@signed_in_action
def restore_batch(request: PageRequest, key: int) -> HttpResponse:
    """Undo a move to the trash: restore exactly its drawers."""
    palace = Palace.objects.own(request.user)
    at = moment_of(key)
    if at is None or not was_batch(palace, at):
        raise Http404
    drawers = batch_of(palace, at)
    leaf = with_preview(drawers.with_place()).first() if request.htmx else None
    restored = restore(palace, drawers)
    enqueue_mining(restored.unmined)
    if request.htmx:
        return _leaf_is_back(request, leaf, restored)
    if restored.drawers:
        _say_restored(request, restored)
    else:
        messages.info(request, NOTHING_TO_UNDO)
    return redirect(way_back(request) or "trash")


@signed_in_action
def restore_drawer(request: PageRequest, uuid: UUID) -> HttpResponse:
    drawer = _own_drawer(request, uuid)
    restored = restore(drawer.palace, drawers_in(drawer))
    enqueue_mining(restored.unmined)
    if restored.drawers:
        _say_restored(request, restored)
    else:
        messages.info(request, "There was nothing to restore: it is in its place already.")
    return redirect(way_back(request) or drawer)


@signed_in_action
def purge_drawer(request: PageRequest, uuid: UUID) -> HttpResponse:
    drawer = _own_drawer(request, uuid)
    run = deletion.Purge(drawer.palace)
    run.run(drawers_in(drawer))
    if not run.count:
        messages.error(
            request,
            "Nothing was deleted: only what is in the trash can be deleted for good. "
            "Move the drawer there first.",
        )
        return redirect(drawer)
    messages.success(request, "The drawer is deleted for good.")
    return redirect("trash")


@signed_in_form
def empty_trash(request: PageRequest, key: int) -> HttpResponse:
    """Confirm, then delete for good what went to the trash up to a batch.

    Later batches stay.
    """
    palace = Palace.objects.own(request.user)
    at = moment_of(key)
    if at is None or not was_batch(palace, at):
        raise Http404
    drawers = up_to(key).within(palace)
    count = drawers.count()
    if not count:
        messages.info(request, "There is nothing of that left in the trash.")
        return redirect("trash")
    if request.method != "POST":
        return render(request, "palace/trash_empty.html", {"going": _in_trash(palace, drawers)})
    run = deletion.Purge(palace)
    if run.run(drawers, seconds=deletion.PURGE_IN_REQUEST_S):
        messages.success(request, f"{_drawers_are(run.count)} deleted for good.")
    else:
        _queue_the_rest(request, palace, key)
    return redirect("trash")


def _in_trash(palace: Palace, drawers: DrawerQuerySet) -> Contents:
    """What is deleted for good with these drawers of the trash."""
    drawers = drawers.order_by()
    rest = Drawer.objects.within(palace).exclude(pk__in=drawers.values("pk"))
    stays = rest.filter(source=OuterRef("source"), conversation=OuterRef("conversation"))
    whole = drawers.exclude(Exists(stays)).values("source", "conversation").distinct().count()
    batches = drawers.values_list("trashed_at", flat=True).distinct()
    lost = facts_lost(palace, [batch_key(at) for at in batches if at])
    return Contents(whole, drawers.count(), sum(facts.total for facts in lost.values()))


def _in_order(palace: Palace) -> QuerySet[Drawer, int]:
    """The keys of all that is in the trash, of which a page shows few."""
    trashed = Drawer.objects.within(palace).trashed()
    ordered = trashed.order_by("-trashed_at", "conversation", "position", "pk")
    return ordered.values_list("pk", flat=True)


def _read(palace: Palace, keys: Sequence[Any]) -> list[Drawer]:
    """These drawers with their places, in this order."""
    found = shown_drawers(palace, "id", keys)
    return [found[key] for key in keys if key in found and found[key].trashed_at]


def _batches(palace: Palace, drawers: Sequence[Drawer], token: str) -> list[BatchRow]:
    """
    Args:
        token: Against forged requests.
    """
    here = address_of("trash")
    moments = {drawer.trashed_at for drawer in drawers}
    counted_by = Drawer.objects.within(palace).filter(trashed_at__in=moments).order_by()
    totals = dict(counted_by.values_list("trashed_at").annotate(Count("pk")))
    lost = facts_lost(palace, [batch_key(at) for at in moments if at])
    return [
        BatchRow(
            at,
            key := batch_key(at),
            totals.get(at, 0),
            days_left(at),
            mark_safe("".join(_leaf(each, token, here) for each in group)),  # noqa: S308 - escaped.
            lost.get(key),
        )
        for at, group in groupby(drawers, key=lambda drawer: drawer.trashed_at)
        if at is not None
    ]


def _leaf(drawer: Any, token: str, here: str) -> str:
    """A drawer of the trash in its list."""
    pointer = str(drawer.pointer)
    place = f'{escape(drawer.room.wing.name)} <span aria-hidden="true">›</span>'
    return (
        f'<li class="leaf">\n<a class="leaf-link" href="{drawer.get_absolute_url()}">\n'
        f'<span class="leaf-who">{escape(said_by(drawer))}, {at_minute(drawer.said_at)}</span>\n'
        f'<span class="leaf-text">{escape(excerpt(drawer.preview))}</span>\n</a>\n'
        f'<span class="aaak"><span class="pointer">{pointer}</span>'
        f' <span class="leaf-place">{place} {escape(drawer.room.title)}</span></span>\n'
        '<input class="pick" form="selected" type="checkbox" name="drawer"'
        f' value="{drawer.uuid}" aria-label="Select {pointer}">\n'
        f"{ways_out(drawer, token, here)}</li>\n"
    )


def _own_place(request: PageRequest, kind: str, uuid: UUID) -> Place:
    palace = Palace.objects.own(request.user)
    places: dict[str, QuerySet[Any]] = {
        "wing": Wing.objects.within(palace),
        "room": Room.objects.within(palace).select_related("wing"),
        "closet": Closet.objects.within(palace).select_related("room__wing"),
        "drawer": Drawer.objects.within(palace).with_place(),
    }
    if kind not in places:
        raise Http404
    place: Place = get_object_or_404(places[kind], uuid=uuid)
    return place


def _own_drawer(request: PageRequest, uuid: UUID) -> Drawer:
    palace = Palace.objects.own(request.user)
    return get_object_or_404(Drawer.objects.within(palace).with_place(), uuid=uuid)


def _ask(request: PageRequest, kind: str, place: Place) -> HttpResponse:
    going = contents_of(place.palace, drawers_in(place))
    if not going.messages:
        messages.info(request, f"There is nothing in this {kind} to move to the trash.")
        return redirect(_nearest(place))
    context = {"kind": kind, "place": place, "going": going, "lost": facts_to_lose(place)}
    return render(request, "palace/trash_place.html", context)


def _leaf_is_gone(request: PageRequest, drawer: Drawer, batch: Batch) -> HttpResponse:
    context = {"drawer": drawer, "batch": batch, "counts": counts_beside(request, drawer)}
    return render(request, "palace/_leaf_gone.html", context)


def _leaf_is_back(request: PageRequest, drawer: Drawer | None, restored: Restored) -> HttpResponse:
    if drawer is None or not restored.drawers:
        return render(request, "palace/_leaf_gone.html", {"sentence": NOTHING_TO_UNDO})
    context = {"drawer": drawer, "counts": counts_beside(request, drawer), "is_back": True}
    return render(request, "palace/_leaf_back.html", context)


def _offer_undo(request: PageRequest, batch: Batch, place: Place) -> None:
    context = {"batch": batch, "next": way_back(request) or place.get_absolute_url()}
    # Rendering has marked the text as safe; it has figures and addresses only.
    messages.success(request, render_to_string("palace/_undo.html", context, request))


def _say_restored(request: PageRequest, restored: Restored) -> None:
    messages.success(request, f"{_drawers_are(restored.drawers)} back in place.")


def _drawers_are(count: int) -> str:
    return f"{counted(count, 'drawer')} {'is' if count == 1 else 'are'}"


def _queue_the_rest(request: PageRequest, palace: Palace, key: int) -> None:
    try:
        deletion.empty_trash.delay(palace.pk, key)
    except OperationalError:
        messages.warning(
            request,
            "Part of the trash is deleted. The queue (Redis) does not answer at the moment; "
            "empty the trash once more to go on.",
        )
    else:
        messages.success(
            request, "The trash is being emptied. There is much in it: this takes a few minutes."
        )


def _nearest(place: Place) -> str:
    """The closest containing place that is not empty, else the whole palace."""
    around: list[Place] = []
    if isinstance(place, Drawer):
        around += [place.closet] if place.closet else []
        around.append(place.room)
    elif isinstance(place, Closet):
        around.append(place.room)
    if not isinstance(place, Wing):
        room = place if isinstance(place, Room) else place.room
        around.append(room.wing)
    for each in around:
        if drawers_in(each).kept().exists():
            return each.get_absolute_url()
    return "memory"


@dataclass(frozen=True, slots=True)
class LostFacts:
    """The facts that lose their last evidence with some drawers.

    Attributes:
        named: The first facts.
        total: The number of all.
    """

    named: list[Fact]
    total: int

    @property
    def others(self) -> int:
        return self.total - len(self.named)


def facts_to_lose(place: Place) -> LostFacts:
    """Active facts with evidence in this place alone, the newest first."""
    palace = place.palace
    facts = Fact.objects.supported_only_by(palace, drawers_in(place).kept()).order_by(
        "-recorded_at", "-pk"
    )
    named = list(facts[: NAMED + 1])
    return LostFacts(named[:NAMED], facts.count() if len(named) > NAMED else len(named))


def facts_lost(palace: Palace, batches: Collection[int]) -> dict[int, LostFacts]:
    """By the key of a batch, the facts that went with it and are still inactive."""
    noted = Activity.objects.filter(
        palace=palace, kind=Activity.Kind.DRAWERS_TRASHED, detail__batch__in=list(batches)
    )
    memories: Mapping[int, list[str]] = {
        detail["batch"]: detail["facts"]
        for detail in noted.values_list("detail", flat=True)
        if "facts" in detail
    }
    latest = _latest(palace, [memory for each in memories.values() for memory in each])
    found = {
        key: [
            fact
            for memory in each
            if (fact := latest.get(UUID(memory))) and _went_in(fact, moment_of(key))
        ]
        for key, each in memories.items()
    }
    return {key: LostFacts(facts[:NAMED], len(facts)) for key, facts in found.items() if facts}


def _latest(palace: Palace, memories: Collection[str]) -> dict[UUID, Fact]:
    """The latest version by memory."""
    return {fact.memory: fact for fact in Fact.objects.within(palace).latest_versions(memories)}


def _went_in(fact: Fact, at: datetime | None) -> bool:
    """Whether it lost its evidence with the drawers of this batch, or was deleted with them."""
    deleted_too = fact.fate == Fact.Fate.DELETED and fact.retired_at == at
    return fact.fate == Fact.Fate.UNFOUNDED or deleted_too
