"""Several selected people or things at once: merge them, or trash the messages that name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.text import get_text_list

from language.facts import USER
from palace.curation.entities import BadEntity, merge_entities, undo
from palace.curation.trash import contents_of, trash_drawers
from palace.models import Activity, Drawer, DrawerQuerySet, Entity, Mention, Palace
from palace.queries.facts import display_name
from palace.views.entities.views import entity_rows
from palace.views.shared.query_params import way_back
from settings_app.pages import PageRequest, signed_in_action

MOST_AT_ONCE = 50


@signed_in_action
def selected_entities(request: PageRequest) -> HttpResponse:
    """Do one thing (`do`) to the ticked `entity`s; `undo` takes back the merges in `merge`."""
    palace = Palace.objects.own(request.user)
    do = request.POST.get("do", "")
    if do == "undo":
        return _undo_merges(request, palace)
    chosen = _chosen(request, palace)
    if not chosen:
        messages.error(request, "Nothing was selected. Tick the boxes of the rows first.")
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
        raise Http404
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
    return get_text_list([f"“{display_name(entity)}”" for entity in entities], "and")


def _undo_merges(request: PageRequest, palace: Palace) -> HttpResponse:
    """All of them or none; the latest first, as each builds on the one before."""
    merges = Activity.objects.filter(
        palace=palace, kind=Activity.Kind.ENTITIES_MERGED, uuid__in=_uuids(request, "merge")
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
    uuids = _uuids(request, "entity")
    found = list(Entity.objects.filter(palace=palace, uuid__in=uuids).order_by("kind", "slug"))
    if uuids and not found:
        raise Http404
    return found


def _uuids(request: PageRequest, name: str) -> set[UUID]:
    try:
        return {UUID(each) for each in request.POST.getlist(name)}
    except ValueError:
        raise Http404 from None


def _back(request: PageRequest) -> HttpResponse:
    return redirect(way_back(request) or "entities")


ACTIONS: dict[str, Callable[[PageRequest, Palace, Sequence[Entity]], HttpResponse]] = {
    "merge": _merge,
    "trash": _trash,
}
