"""One recall: its question, hits and rejected candidates, and the drawers it should have found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from palace.errors import PalaceError
from palace.models import Drawer, Fact, Palace, RecollectionTrace
from palace.models.aaak import Pointer
from palace.queries.evidence import with_quotes
from palace.queries.facts import latest_versions
from palace.recall.evaluation.cases import NotACase, case_of, expect, take_back
from palace.views.recalls.score_steps import explained
from palace.views.recalls.trace_rows import floor_sentence, reading, rows_of, stages
from palace.views.shared.query_params import get_by_uuid
from settings_app.access import PageRequest, signed_in_form

# A longer question is no heading.
HEADING_LENGTH = 140


class NoSuchDrawer(PalaceError):
    code = "no_such_drawer"


@signed_in_form
def recall_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    """The page of a recall; POST adds or removes an expected drawer.

    That is named by `drawer`, its id, as the buttons do, or by `pointer`, as people do.
    """
    palace = Palace.objects.own(request.user)
    traces = RecollectionTrace.objects.select_related("palace")
    trace = get_object_or_404(traces, palace=palace, uuid=uuid)
    if request.method != "POST":
        return _show(request, trace)
    if "drawer" in request.POST:
        drawers = Drawer.objects.within(palace).with_place()
        return _mark(request, trace, get_by_uuid(drawers, request.POST["drawer"]))
    return _name(request, trace, request.POST.get("pointer", ""))


def _mark(request: PageRequest, trace: RecollectionTrace, drawer: Drawer) -> HttpResponse:
    """Mark or unmark a row as expected."""
    wanted, error = "take_back" not in request.POST, ""
    try:
        if wanted:
            expect(trace, drawer)
        elif case := case_of(trace):
            take_back(case, drawer)
    except NotACase as refusal:
        wanted, error = False, str(refusal)
    if request.htmx:
        context = {
            "trace": trace,
            "drawer": drawer,
            "is_expected": wanted,
            "is_hit": any(hit["drawer"] == str(drawer.uuid) for hit in trace.hits),
            "refusal": error,
        }
        return render(request, "palace/_expect.html", context, status=400 if error else 200)
    if error:
        return _show(request, trace, error=error)
    return redirect(f"{reverse('recall_detail', args=[trace.uuid])}#drawer-{drawer.uuid}")


def _name(request: PageRequest, trace: RecollectionTrace, text: str) -> HttpResponse:
    try:
        drawer = _by_pointer(trace.palace, text)
        expect(trace, drawer)
    except PalaceError as error:
        return _show(request, trace, pointer=text, error=str(error))
    messages.success(request, f"Saved: {drawer.pointer} should come for this question.")
    return redirect("recall_detail", trace.uuid)


def _by_pointer(palace: Palace, text: str) -> Drawer:
    """
    Raises:
        BadPointer: `text` is not a pointer.
        NoSuchDrawer: nothing is kept there.
    """
    wanted = Pointer.parse(text)
    drawers = Drawer.objects.within(palace).with_place()
    drawer: Drawer | None = drawers.filter(
        room__palace=palace, room__number=wanted.room, number=wanted.drawer
    ).first()
    if drawer is None:
        raise NoSuchDrawer(
            f"There is no drawer {wanted}. Each drawer’s page has its pointer, to be copied."
        )
    return drawer


def _show(request: PageRequest, trace: RecollectionTrace, **form: Any) -> HttpResponse:
    rows = rows_of(trace)
    context = {
        "trace": trace,
        "is_heading": len(trace.query) <= HEADING_LENGTH,
        # Asked of another moment than the one it was asked at.
        "is_then": abs((trace.created_at - trace.now).total_seconds()) > 60,
        "shown": rows,
        "known": given_facts(trace),
        "reading": reading(trace),
        "stages": stages(trace),
        "floor": floor_sentence(trace),
        "signals": explained(rows.accounts),
        **form,
    }
    status = 400 if "error" in form else 200
    return render(request, "palace/recall_detail.html", context, status=status)


@dataclass(frozen=True, slots=True)
class GivenFacts:
    """
    Attributes:
        facts: Best first.
        gone: How many more there were, which are deleted for good by now.
    """

    facts: list[Fact]
    gone: int

    @property
    def total(self) -> int:
        return len(self.facts) + self.gone


def given_facts(trace: RecollectionTrace) -> GivenFacts:
    """Each in the version that was known at the time of the recall."""
    memories = [given["memory"] for given in trace.facts]
    if not memories:
        return GivenFacts([], 0)
    latest = latest_versions(trace.palace, memories).filter(recorded_at__lte=trace.created_at)
    rows = with_quotes(Fact.objects.filter(pk__in=latest.values("pk")), at_most=1)
    found = {str(fact.memory): fact for fact in rows}
    kept = [found[memory] for memory in memories if memory in found]
    return GivenFacts(kept, len(memories) - len(kept))
