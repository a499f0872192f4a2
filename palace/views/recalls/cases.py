"""The owner's test cases: questions with expected drawers, and recall's scores on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from palace.models import Drawer, ExpectedDrawer, Palace, RecallCase
from palace.queries.places import with_preview
from palace.recall.evaluation.cases import take_back
from palace.recall.evaluation.trials import DEPTH, last_scores, try_now
from palace.templatetags.palace_tags import counted
from palace.views.shared.pagination import CountedPage
from palace.views.shared.query_params import get_by_uuid
from settings_app.access import PageRequest, signed_in_action, signed_in_page

# A request tries so many cases by itself, and begins none after so many seconds.
TRIED_AT_ONCE, TRYING_S = 20, 8
# Among so many first ones a drawer counts as found.
FIRST = 5
# The measures, as people may read them.
IN_WORDS = {
    "any@5": "have a right drawer in the first five",
    "all@5": "have all of them there",
    "recall@10": "of the right ones are in the first ten",
    "mrr": "is one over the first right one’s place, on average",
}


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """
    Attributes:
        came: What the last try made of it, in words; empty where there was none.
        is_found: Whether that was among the first five.
    """

    drawer: Drawer
    came: str
    is_found: bool


@dataclass(frozen=True, slots=True)
class CaseRow:
    case: RecallCase
    expected: list[ExpectedRow]


@signed_in_page
def recall_cases(request: PageRequest) -> HttpResponse:
    """Newest first."""
    palace = Palace.objects.own(request.user)
    cases = RecallCase.objects.within(palace)
    listed = CountedPage(cases.order_by("-created_at", "-pk"), request.GET.get("page"))
    tried, scores = last_scores(palace)
    context = {
        "listed": listed,
        "rows": _rows(palace, listed.rows),
        "tried": tried,
        "scores": [(_figure(name, scores[name]), what) for name, what in IN_WORDS.items()]
        if tried
        else [],
        "at_once": TRIED_AT_ONCE,
    }
    return render(request, "palace/recall_cases.html", context)


@signed_in_action
def try_cases(request: PageRequest) -> HttpResponse:
    """Run recall on the questions again, with the default recipe and no model."""
    palace = Palace.objects.own(request.user)
    tried = try_now(palace, at_most=TRIED_AT_ONCE, seconds=TRYING_S)
    left = RecallCase.objects.within(palace).count() - tried
    if not tried:
        messages.info(request, "There are no cases to try.")
    elif left > 0:
        messages.success(
            request, f"Tried {counted(tried, 'case')}; press again for {left} of the others."
        )
    else:
        messages.success(request, f"Tried {counted(tried, 'case')}.")
    return redirect("recall_cases")


@signed_in_action
def delete_case(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Delete a case, or only `drawer` from it; without its last drawer a case is deleted too."""
    palace = Palace.objects.own(request.user)
    case = get_object_or_404(RecallCase.objects.within(palace).select_related("palace"), uuid=uuid)
    if "drawer" not in request.POST:
        case.delete()
        messages.success(request, "Deleted the case. Its drawers stay where they are.")
    elif take_back(case, get_by_uuid(Drawer.objects.within(palace), request.POST["drawer"])):
        messages.success(request, "That was all it expected, so the case is deleted.")
    else:
        messages.success(request, "Taken out of the case.")
    return redirect("recall_cases")


def _figure(name: str, value: float) -> str:
    """A share in per cent; a mean of one over the place as it is."""
    return f"{value:.2f}" if name == "mrr" else f"{value:.0%}".replace("%", " %")


def _rows(palace: Palace, cases: Sequence[RecallCase]) -> list[CaseRow]:
    expected = list(ExpectedDrawer.objects.filter(palace=palace, case__in=cases).order_by("pk"))
    drawers = Drawer.objects.within(palace).filter(pk__in=[each.drawer_id for each in expected])
    by_key = with_preview(drawers.with_place()).in_bulk()
    tried = {case.pk for case in cases if case.tried_at}
    by_case: defaultdict[int, list[ExpectedRow]] = defaultdict(list)
    for each in expected:
        if drawer := by_key.get(each.drawer_id):
            by_case[each.case_id].append(_expected(each, drawer, was_tried=each.case_id in tried))
    return [CaseRow(case, by_case[case.pk]) for case in cases]


def _expected(each: ExpectedDrawer, drawer: Drawer, *, was_tried: bool) -> ExpectedRow:
    if drawer.trashed_at:
        return ExpectedRow(drawer, "in the trash, so it is left out", is_found=False)
    if not was_tried:
        return ExpectedRow(drawer, "", is_found=False)
    if each.place is None:
        return ExpectedRow(drawer, f"not among the first {DEPTH}", is_found=False)
    return ExpectedRow(drawer, f"came in place {each.place}", is_found=each.place <= FIRST)
