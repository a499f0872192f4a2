"""Merge and split entities, and undo either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from language.facts import USER
from language.storable import LABEL_LENGTH, storable_label
from palace.curation.entities import BadEntity, merge_entities, rename_entity, split_entity, undo
from palace.models import Activity, Entity, Fact, Palace
from palace.queries.facts import about_entity, display_name, named_like
from palace.queries.timeline import latest_named
from palace.templatetags.fact_tags import KINDS
from palace.views.entities.views import mention_rows
from palace.views.shared.pagination import UncountedPage
from palace.views.shared.query_params import get_by_uuid
from settings_app.pages import PageRequest, signed_in_action, signed_in_page

OTHERS_SHOWN = 20
FACTS_SHOWN = 60
MENTIONS_SHOWN = 40
# Characters of a message shown with a mention.
AROUND = 200
# Shorter words occur in too many names to find similar ones.
TELLING = 3


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
    other = get_by_uuid(Entity.objects.filter(palace=_palace(request)), chosen)
    try:
        change = merge_entities(_palace(request), keep, other)
    except BadEntity as error:
        return _show(request, keep, merge_error=str(error))
    _offer_undo(
        request, f"“{display_name(other)}” is part of “{display_name(keep)}” now.", change.activity
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
    said = f"“{display_name(change.entity)}” was split off “{display_name(entity)}”."
    _offer_undo(request, said, change.activity)
    return redirect(change.entity)


@signed_in_action
def entity_rename(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Rename an entity; `undo` takes the name back and leaves none behind."""
    entity = _own(request, uuid)
    name, is_undo = request.POST.get("name", ""), bool(request.POST.get("undo"))
    try:
        before = rename_entity(
            _palace(request), entity, name[: 2 * LABEL_LENGTH], keeps_old=not is_undo
        )
    except BadEntity as error:
        return _show(request, entity, rename_error=str(error), new_name=name)
    entity.refresh_from_db()
    if before != entity.name:
        context = {"said": f"“{before}” is called “{entity.name}” now.", "name": before}
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
    return others.filter(alike, kind=entity.kind)


def _palace(request: PageRequest) -> Palace:
    return Palace.objects.own(request.user)


def _own(request: PageRequest, uuid: UUID) -> Entity:
    palace = _palace(request)
    entity = get_object_or_404(Entity, palace=palace, uuid=uuid)
    entity.palace = palace  # Known already; saves a query.
    return entity


def _uuids(texts: Sequence[str]) -> list[UUID]:
    try:
        return [UUID(text) for text in texts]
    except ValueError:
        raise Http404 from None


def _offer_undo(request: PageRequest, said: str, activity: Activity) -> None:
    context = {"said": said, "activity": activity}
    # Rendering has escaped the names and marked the text as safe.
    messages.success(request, render_to_string("palace/_undo_entity.html", context, request))
