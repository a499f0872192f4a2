"""Wings put in order: their name and kind, and two made one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from palace.curation.wings import BadWing, NameTaken, change_wing, merge_wings, to_be_merged
from palace.models import Palace, Wing
from palace.templatetags.palace_tags import counted
from settings_app.access import PageRequest, signed_in_form

UNSORTED_STAYS = "The unsorted wing keeps its name: conversations wait there until they are mined."


@signed_in_form
def wing_edit(request: PageRequest, uuid: UUID) -> HttpResponse:
    """The name and kind of a wing, and the way to merge it with another."""
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
    """Asks before a wing becomes part of another, then merges them."""
    wing = _own_wing(request, uuid)
    chosen = (request.POST if request.method == "POST" else request.GET).get("into", "")
    if not chosen:
        error = "Choose the wing it becomes part of."
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=error)
    into = _other_wing(request, chosen)
    try:
        if request.method != "POST":
            context = {"wing": wing, "plan": to_be_merged(wing, into)}
            return render(request, "palace/wing_merge.html", context)
        merged = merge_wings(wing, into)
    except BadWing as error:
        return _show_form(request, wing, name=wing.name, kind=wing.kind, merge_error=str(error))
    rooms, drawers = counted(merged.rooms, "room"), counted(merged.drawers, "drawer")
    messages.success(request, f"“{wing.name}” is part of this wing now: {rooms}, {drawers} moved.")
    return redirect(merged.into)


def _own_wing(request: PageRequest, uuid: UUID) -> Wing:
    palace = Palace.objects.own(request.user)
    return get_object_or_404(Wing.objects.within(palace).select_related("palace"), uuid=uuid)


def _other_wing(request: PageRequest, chosen: str) -> Wing:
    try:
        return _own_wing(request, UUID(chosen))
    except (ValueError, ValidationError):
        raise Http404 from None


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
