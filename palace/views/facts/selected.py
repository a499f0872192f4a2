"""Several selected facts at once: mark them as wrong, forget them, restore them."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string

from palace.curation.deletion import delete_fact
from palace.curation.deletion import restore_fact as restore_with_words
from palace.errors import FactConflict, NoSuchFact
from palace.knowledge.facts import WRONG, by_person
from palace.knowledge.facts.fact_edits import delete
from palace.models import Fact, Palace
from palace.templatetags.palace_tags import counted
from palace.views.shared.query_params import way_back
from settings_app.pages import PageRequest, signed_in_action

MOST_AT_ONCE = 200


@signed_in_action
def selected_facts(request: PageRequest) -> HttpResponse:
    """Do one thing (`do`) to the ticked `fact`s: `wrong`, `forget` or `restore`."""
    palace = Palace.objects.own(request.user)
    do, chosen = request.POST.get("do", ""), _chosen(palace, request)
    if not chosen:
        messages.error(request, "Nothing was selected. Tick the boxes of the rows first.")
    elif len(chosen) > MOST_AT_ONCE:
        messages.error(request, f"At most {MOST_AT_ONCE} can be selected at once. Select fewer.")
    elif do == "restore":
        _restore(request, palace, chosen)
    elif do in ("wrong", "forget"):
        _drop(request, palace, chosen, do)
    return redirect(way_back(request) or "facts")


def _drop(request: PageRequest, palace: Palace, chosen: list[Fact], do: str) -> None:
    dropped = [fact for fact in chosen if _dropped(palace, fact, do)]
    if not dropped:
        messages.info(request, "There was nothing to do: these facts are inactive already.")
        return
    facts = counted(len(dropped), "fact")
    said = f"{facts} marked as wrong." if do == "wrong" else f"{facts} forgotten."
    context = {"said": said, "dropped": dropped, "next": way_back(request)}
    # Rendering has marked the text as safe; it has figures and ids only.
    messages.success(request, render_to_string("palace/_undo_facts.html", context, request))


def _dropped(palace: Palace, fact: Fact, do: str) -> bool:
    """Whether the fact was active until now."""
    if fact.retired_at:
        return False
    with suppress(NoSuchFact):
        if do == "wrong":
            delete(palace, fact.memory, by_person(fact), why=WRONG)
        else:
            delete_fact(palace, fact.memory, by_person(fact), doors=())
        return True
    return False


def _restore(request: PageRequest, palace: Palace, chosen: list[Fact]) -> None:
    restored = 0
    for fact in chosen:
        # What took its place since stays.
        with suppress(FactConflict):
            restore_with_words(palace, fact, by_person(fact))
            restored += 1
    said = f"{counted(restored, 'fact')} restored."
    if left := len(chosen) - restored:
        said += f" {counted(left, 'fact')} stayed inactive: others have taken their place."
    messages.success(request, said)


def _chosen(palace: Palace, request: PageRequest) -> list[Fact]:
    """The latest version of each ticked fact.

    Raises:
        Http404: a value is no id, or none of them is in this palace.
    """
    try:
        memories = {UUID(each) for each in request.POST.getlist("fact")}
    except ValueError:
        raise Http404 from None
    rows = Fact.objects.within(palace).filter(memory__in=memories).select_related("palace")
    latest = rows.order_by("memory", "-recorded_at", "-pk").distinct("memory")
    found = list(latest)
    if memories and not found:
        raise Http404
    return found
