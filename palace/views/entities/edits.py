"""Merge and split entities, and undo either; merge or trash several selected ones at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.text import get_text_list

from language.facts import USER
from language.storable import LABEL_LENGTH, storable_label
from palace.curation.entities import BadEntity, merge_entities, rename_entity, split_entity, undo
from palace.curation.trash import contents_of, trash_drawers
from palace.models import Activity, Drawer, DrawerQuerySet, Entity, Fact, Mention, Palace
from palace.queries.facts import about_entity, named_like
from palace.queries.timeline import latest_named
from palace.views.activity import say_done
from palace.views.entities.views import entity_rows, mention_rows
from palace.views.shared.palace_tags import KINDS
from palace.views.shared.query_params import UncountedPage, find_by_uuid, way_back
from settings_app.pages import (
    NOTHING_SELECTED,
    PageRequest,
    is_stale,
    signed_in_action,
    signed_in_page,
)

OTHERS_SHOWN = 20
FACTS_SHOWN = 60
MENTIONS_SHOWN = 40
# Characters of a message shown with a mention.
AROUND = 200
# Shorter words occur in too many names to find similar ones.
TELLING = 3
MOST_AT_ONCE = 50
NAME_GONE = "That name is no longer here: it was merged with another. Choose another one."


@signed_in_page
def entity_edit(request: PageRequest, uuid: UUID) -> HttpResponse:
    """The forms; `?q=` searches for an entity to merge with."""
    return _show(request, _own(request, uuid))


@signed_in_action
def entity_merge(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Merge `other` into this entity."""
    keep = _own(request, uuid)
    chosen = request.POST.get("other", "")
    if not chosen:
        return _show(request, keep, merge_error="Choose the one to merge.")
    other = find_by_uuid(Entity.objects.filter(palace=_palace(request)), chosen)
    if other is None:
        return _show(request, keep, merge_error=NAME_GONE)
    try:
        change = merge_entities(_palace(request), keep, other)
    except BadEntity as error:
        return _show(request, keep, merge_error=str(error))
    say_done(
        request, f"“{other.display_name}” is part of “{keep.display_name}” now.", change.activity
    )
    return redirect(keep)


@signed_in_action
def entity_split(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Move the chosen facts, drawers and names to a new entity."""
    entity = _own(request, uuid)
    name, kind = request.POST.get("name", ""), request.POST.get("kind", "")
    try:
        change = split_entity(
            _palace(request),
            entity,
            name=name[: 2 * LABEL_LENGTH],
            kind=kind,
            facts=_uuids(request.POST.getlist("fact")),
            drawers=_uuids(request.POST.getlist("drawer")),
            aliases=request.POST.getlist("alias"),
        )
    except BadEntity as error:
        return _show(request, entity, split_error=str(error), name=name, new_kind=kind)
    said = f"“{change.entity.display_name}” was split off “{entity.display_name}”."
    say_done(request, said, change.activity)
    return redirect(change.entity)


@signed_in_action
def entity_rename(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Rename an entity; `undo` takes the name back and leaves none behind."""
    entity = _own(request, uuid)
    name, is_undo = request.POST.get("name", ""), bool(request.POST.get("undo"))
    if name != entity.name and is_stale(request, entity.name):
        messages.info(request, f"It is called “{entity.name}” since, so nothing was undone.")
        return redirect(entity)
    try:
        before = rename_entity(
            _palace(request), entity, name[: 2 * LABEL_LENGTH], keeps_old=not is_undo
        )
    except BadEntity as error:
        return _show(request, entity, rename_error=str(error), new_name=name)
    entity.refresh_from_db()
    if before != entity.name:
        context = {"said": f"“{before}” is called “{entity.name}” now.", "name": before}
        context["made"] = entity.name
        context["address"] = reverse("entity_rename", args=[entity.uuid])
        # Rendering has escaped the names and marked the text as safe.
        said = render_to_string("palace/_undo_rename.html", context, request)
        messages.success(request, "Undone." if is_undo else said)
    return redirect(entity)


@signed_in_action
def entity_undo(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Undo a merge or a split; `uuid` is the activity's."""
    palace = _palace(request)
    kinds = (Activity.Kind.ENTITIES_MERGED, Activity.Kind.ENTITY_SPLIT)
    activity = get_object_or_404(Activity, palace=palace, kind__in=kinds, uuid=uuid)
    try:
        if undo(palace, activity):
            messages.success(request, "Undone. It is as it was before.")
        else:
            messages.info(request, "There was nothing to undo: that was done before.")
    except BadEntity as error:
        messages.error(request, str(error))
    about = (activity.detail.get("about") or [""])[0]
    entity = Entity.objects.filter(palace=palace, uuid=about).first() if about else None
    return redirect(entity) if entity else redirect("entities")


def _show(request: PageRequest, entity: Entity, **form: Any) -> HttpResponse:
    palace, words = entity.palace, storable_label(request.GET.get("q", ""))
    about = Fact.objects.within(palace).active().filter(about_entity(entity))
    named = latest_named(entity, at_most=MENTIONS_SHOWN + 1)
    mentions = UncountedPage(named, size=MENTIONS_SHOWN)
    context = {
        "entity": entity,
        "words": words,
        "others": _others(palace, entity, words),
        "facts": UncountedPage(about.order_by("-recorded_at", "-pk"), size=FACTS_SHOWN),
        "mentioned": mention_rows(entity, mentions.rows, around=AROUND),
        "has_more_mentions": mentions.has_next,
        "kinds": [(str(kind), label) for kind, label in KINDS.items()],
        "name": entity.name,
        "new_kind": entity.kind,
        "new_name": entity.name,
        "is_user": entity.name == USER,
        "ticked": {*request.POST.getlist("fact"), *request.POST.getlist("drawer")},
        "ticked_names": request.POST.getlist("alias"),
        **form,
    }
    bad = any(name.endswith("_error") for name in form)
    return render(request, "palace/entity_edit.html", context, status=400 if bad else 200)


def _others(palace: Palace, entity: Entity, words: str) -> list[Entity]:
    """Entities with all of the words in their name; without words, those with a similar name."""
    others = Entity.objects.filter(palace=palace).exclude(pk=entity.pk)
    if words:
        others = others.filter(named_like(words))
    else:
        others = _alike(others, entity)
    return list(others.order_by("kind", "slug")[:OTHERS_SHOWN])


def _alike(others: QuerySet[Entity], entity: Entity) -> QuerySet[Entity]:
    names = [entity.name, *entity.aliases]
    telling = {word for name in names for word in name.split() if len(word) >= TELLING}
    alike = Q(pk__in=[])
    for word in sorted(telling)[:OTHERS_SHOWN]:
        alike |= Q(name__icontains=word) | Q(aliases__icontains=word)
    # A pet may have been taken for a person.
    kinds = Entity.BEINGS if entity.kind in Entity.BEINGS else (entity.kind,)
    return others.filter(alike, kind__in=kinds)


def _palace(request: PageRequest) -> Palace:
    return Palace.objects.own(request.user)


def _own(request: PageRequest, uuid: UUID) -> Entity:
    palace = _palace(request)
    entity = get_object_or_404(Entity, palace=palace, uuid=uuid)
    entity.palace = palace  # Known already; saves a query.
    return entity


def _uuids(texts: Sequence[str]) -> set[UUID]:
    try:
        return {UUID(text) for text in texts}
    except ValueError:
        raise Http404 from None


@signed_in_action
def selected_entities(request: PageRequest) -> HttpResponse:
    """Do one thing (`do`) to the ticked `entity`s; `undo` takes back the merges in `merge`."""
    palace = Palace.objects.own(request.user)
    do = request.POST.get("do", "")
    if do == "undo":
        return _undo_merges(request, palace)
    chosen = _chosen(request, palace)
    if not chosen:
        messages.error(request, NOTHING_SELECTED)
    elif len(chosen) > MOST_AT_ONCE:
        messages.error(request, f"At most {MOST_AT_ONCE} can be selected at once. Select fewer.")
    elif do in ACTIONS:
        return ACTIONS[do](request, palace, chosen)
    return _back(request)


def _merge(request: PageRequest, palace: Palace, chosen: Sequence[Entity]) -> HttpResponse:
    """Merge all into the one named by `keep`; without it, ask which one that is."""
    if len(chosen) == 1:
        messages.error(request, "Select two or more to merge them.")
        return _back(request)
    # The user is called You everywhere, so that name stays.
    candidates = [one for one in chosen if one.name == USER] or chosen
    if "keep" not in request.POST:
        return _ask_which(request, palace, chosen, candidates)
    keep = next((one for one in candidates if str(one.uuid) == request.POST["keep"]), None)
    if keep is None:
        messages.error(request, NAME_GONE)
        return _back(request)
    others = [one for one in chosen if one.pk != keep.pk]
    try:
        with transaction.atomic():
            merges = [merge_entities(palace, keep, other).activity for other in others]
    except BadEntity as error:
        messages.error(request, str(error))
        return _back(request)
    said = f"{_names(others)} {'is' if len(others) == 1 else 'are'} part of {_names([keep])} now."
    context = {"said": said, "merges": merges, "next": way_back(request)}
    # Rendering has escaped the names and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo_entities.html", context, request))
    return _back(request)


def _ask_which(
    request: PageRequest, palace: Palace, chosen: Sequence[Entity], candidates: Sequence[Entity]
) -> HttpResponse:
    rows = entity_rows(palace, candidates)
    context = {
        "chosen": chosen,
        "rows": sorted(rows, key=lambda row: (row.facts, row.mentions), reverse=True),
        "absorbed": _names([one for one in chosen if one not in candidates]),
        "next": way_back(request),
    }
    return render(request, "palace/entities_merge.html", context)


def _names(entities: Sequence[Entity]) -> str:
    return get_text_list([f"“{entity.display_name}”" for entity in entities], "and")


def _undo_merges(request: PageRequest, palace: Palace) -> HttpResponse:
    """All of them or none; the latest first, as each builds on the one before."""
    merges = Activity.objects.filter(
        palace=palace,
        kind=Activity.Kind.ENTITIES_MERGED,
        uuid__in=_uuids(request.POST.getlist("merge")),
    )
    if not merges:
        raise Http404
    try:
        with transaction.atomic():
            undone = [undo(palace, merge) for merge in merges.order_by("-pk")]
    except BadEntity as error:
        messages.error(request, str(error))
        return _back(request)
    if any(undone):
        messages.success(request, "Undone. It is as it was before.")
    else:
        messages.info(request, "There was nothing to undo: that was done before.")
    return _back(request)


def _trash(request: PageRequest, palace: Palace, chosen: Sequence[Entity]) -> HttpResponse:
    """Trash the messages that name any of them, once that is `sure`."""
    drawers = _naming(palace, chosen)
    if request.POST.get("sure"):
        batch = trash_drawers(palace, drawers)
        context = {"batch": batch, "next": way_back(request)}
        if batch.drawers:
            # Rendering has marked the text as safe; it has figures and addresses only.
            messages.success(request, render_to_string("palace/_undo.html", context, request))
            return _back(request)
    going = contents_of(palace, drawers)
    if not going.messages:
        messages.info(request, "There was nothing to move: no message in the palace names them.")
        return _back(request)
    context = {"chosen": chosen, "going": going, "next": way_back(request)}
    return render(request, "palace/entities_trash.html", context)


def _naming(palace: Palace, entities: Sequence[Entity]) -> DrawerQuerySet:
    named = Mention.objects.filter(palace=palace, entity__in=entities, drawer=OuterRef("pk"))
    return Drawer.objects.within(palace).kept().filter(Exists(named.order_by()))


def _chosen(request: PageRequest, palace: Palace) -> list[Entity]:
    """
    Raises:
        Http404: a value is no id, or none of them is in this palace.
    """
    uuids = _uuids(request.POST.getlist("entity"))
    found = list(Entity.objects.filter(palace=palace, uuid__in=uuids).order_by("kind", "slug"))
    if uuids and not found:
        raise Http404
    return found


def _back(request: PageRequest) -> HttpResponse:
    return redirect(way_back(request) or "entities")


ACTIONS: dict[str, Callable[[PageRequest, Palace, Sequence[Entity]], HttpResponse]] = {
    "merge": _merge,
    "trash": _trash,
}
