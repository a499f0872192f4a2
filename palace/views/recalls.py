"""One recall with its hits and rejected candidates, and the recalls kept as test cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from language.errors import PalaceError
from llm.tokens import count_tokens
from palace.models import (
    Drawer,
    ExpectedDrawer,
    Fact,
    Palace,
    Pointer,
    RecallCase,
    RecollectionTrace,
)
from palace.queries.facts import add_quotes
from palace.queries.places import with_preview
from palace.recall.evaluation import (
    DEPTH,
    NotACase,
    case_of,
    expect,
    last_scores,
    take_back,
    try_now,
)
from palace.views.score_explanations import ExpectForm, compare, conditions, explained
from palace.views.shared.palace_tags import icon, marked, said_by
from palace.views.shared.query_params import CountedPage, get_by_uuid
from palace.views.trace_rows import TraceRow, floor_sentence, reading, rows_of, stages
from settings_app.pages import PageRequest, signed_in_action, signed_in_form, signed_in_page
from settings_app.row_tags import at_minute, counted

# The most cases that a request tries, and the seconds after which it begins no other.
TRIED_AT_ONCE, TRYING_S = 20, 8
# A drawer counts as found among the first five.
FIRST = 5
# The measures in words.
IN_WORDS = {
    "any@5": "have a right drawer in the first five",
    "all@5": "have all of them there",
    "recall@10": "of the right ones are in the first ten",
    "mrr": "is one over the first right one’s place, on average",
}
# A longer question is not shown as the heading.
HEADING_LENGTH = 140


class NoSuchDrawer(PalaceError):
    code = "no_such_drawer"


@signed_in_form
def recall_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    """The page of a recall; `?expected=` compares a drawer, POST adds or removes an expected one.

    Buttons send its id as `drawer`, people write its `pointer`, to be compared with `compare`.
    """
    palace = Palace.objects.own(request.user)
    traces = RecollectionTrace.objects.select_related("palace")
    trace = get_object_or_404(traces, palace=palace, uuid=uuid)
    if request.method != "POST":
        expected = request.GET.get("expected", "")
        drawers = Drawer.objects.within(palace).with_place()
        return _show(request, trace, judged=get_by_uuid(drawers, expected) if expected else None)
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
        is_hit = any(hit["drawer"] == str(drawer.uuid) for hit in trace.hits)
        form = ExpectForm(trace.uuid, get_token(request), error)
        button = form.html(drawer, is_expected=wanted, is_hit=is_hit)
        return HttpResponse(button, status=400 if error else 200)
    if error:
        return _show(request, trace, error=error)
    return redirect(f"{reverse('recall_detail', args=[trace.uuid])}#drawer-{drawer.uuid}")


def _name(request: PageRequest, trace: RecollectionTrace, text: str) -> HttpResponse:
    try:
        drawer = _by_pointer(trace.palace, text)
        if "compare" in request.POST:
            address = reverse("recall_detail", args=[trace.uuid])
            return redirect(f"{address}?expected={drawer.uuid}#why-not")
        expect(trace, drawer)
    except PalaceError as error:
        return _show(request, trace, pointer=text, error=str(error))
    messages.success(request, f"Saved: {drawer.pointer} is expected for this question.")
    return redirect("recall_detail", trace.uuid)


def _by_pointer(palace: Palace, text: str) -> Drawer:
    """
    Raises:
        BadPointer: `text` is not a pointer.
        NoSuchDrawer: there is no drawer of this pointer.
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


def _show(
    request: PageRequest, trace: RecollectionTrace, judged: Drawer | None = None, **form: Any
) -> HttpResponse:
    rows = rows_of(trace)
    expect_form = ExpectForm(trace.uuid, get_token(request))
    items = TraceItems(expect_form if trace.query else None)
    is_expected = judged is not None and any(f.drawer.pk == judged.pk for f in rows.fates)
    context = {
        "trace": trace,
        "tokens": count_tokens(trace.context),
        "is_heading": len(trace.query) <= HEADING_LENGTH,
        # The question asked about another time.
        "is_then": abs((trace.created_at - trace.now).total_seconds()) > 60,
        "shown": rows,
        "first": items.hits(rows.first),
        "others": items.hits(rows.others),
        "cuts": [(group, items.cut(group.rows)) for group in rows.cuts],
        "known": given_facts(trace),
        "reading": reading(trace),
        "stages": stages(trace),
        "floor": floor_sentence(trace),
        "signals": explained(rows.accounts),
        "narrowed_to": conditions(trace),
        "why_not": compare(trace, judged) if judged and trace.query else None,
        "judged_form": judged and expect_form.html(judged, is_expected=is_expected, is_hit=False),
        **form,
    }
    status = 400 if "error" in form else 200
    return render(request, "palace/recall_detail.html", context, status=status)


@dataclass(frozen=True, slots=True)
class TraceItems:
    """The rows of a trace as items of lists, each in one piece: a page has seventy.

    Attributes:
        form: None if its question was deleted, so that nothing can be expected.
    """

    form: ExpectForm | None

    def hits(self, rows: Iterable[TraceRow]) -> SafeString:
        return mark_safe("".join(map(self._hit, rows)))  # noqa: S308 - its parts are escaped.

    def cut(self, rows: Iterable[TraceRow]) -> SafeString:
        """Shorter: they were looked at and did not come."""
        return mark_safe("".join(map(self._cut, rows)))  # noqa: S308 - its parts are escaped.

    def _hit(self, row: TraceRow) -> str:
        drawer, words, note = row.drawer, "", ""
        unfitting = " unfitting" if row.cut and not row.is_shown_before else ""
        if drawer and not drawer.trashed_at:
            places = [drawer.room.wing.name, drawer.room.title]
            places += [drawer.closet.title] if drawer.closet else []
            path = ' <span aria-hidden="true">›</span> '.join(map(escape, places))
            words = f'<p class="hit-place"><span>{path}</span></p>\n'
            words += f'<p class="snippet">{marked(row.snippet)}</p>\n'
        if row.cut:
            why = f"It was {escape(row.cut)}: the model could see it already."
            if not row.is_shown_before:
                why = f"It was found, but not given to a model: it {escape(row.cut)}."
            note = f'<p class="unfit">{icon("note")}<span>{why}</span></p>\n'
        note += f'<p class="muted">{escape(row.note)}</p>\n' if row.note else ""
        return (
            f'<li class="recalled{unfitting}"{_anchor(row)}>\n<article>\n'
            f'<div class="recalled-words">\n{_head(row)}{words}{note}'
            f"{self._expected(row, is_hit=True)}</div>\n{_account(row)}</article>\n</li>\n"
        )

    def _cut(self, row: TraceRow) -> str:
        words = f'<p class="cut-words">{marked(row.snippet)}</p>\n' if row.is_kept else ""
        why = ""
        if row.drawer and row.is_kept and self.form:
            address = f"{self.form.address}?expected={row.drawer.uuid}#why-not"
            why = f'<a class="why-not" href="{address}">Why not this one?'
            why += f'<span class="unseen"> {escape(row.pointer)}</span></a>\n'
        return (
            f'<li class="cut"{_anchor(row)}>\n<article>\n{_head(row, " by its score")}{words}'
            f'<div class="cut-foot">\n<details class="of-score">\n<summary>{icon("chevron")}'
            f"<span>Score {row.account.sum.plain_figure}</span></summary>\n{_account(row)}"
            f"</details>\n{why}{self._expected(row, is_hit=False)}</div>\n</article>\n</li>\n"
        )

    def _expected(self, row: TraceRow, *, is_hit: bool) -> str:
        if row.drawer is None or not row.is_kept or self.form is None:
            return ""
        return self.form.html(row.drawer, is_expected=row.is_expected, is_hit=is_hit)


def _anchor(row: TraceRow) -> str:
    return f' id="drawer-{row.drawer.uuid}"' if row.drawer else ""


def _account(row: TraceRow) -> str:
    return row.account.table(row.pointer or "a deleted drawer")


def _head(row: TraceRow, ranked: str = "") -> str:
    """Which drawer it is, and whether its words can still be shown."""
    said, gone, place = "A drawer that was deleted for good", "", ""
    if row.drawer:
        by, at = escape(said_by(row.drawer)), at_minute(row.drawer.said_at)
        said = f'<a href="{row.url}">{by}, {at}</a>'
        if row.drawer.trashed_at:
            gone = f"{icon('trash')}<span>It is in the trash by now, where nothing finds it.</span>"
    else:
        gone = "Its words are gone; only the figures are left."
    if row.place:
        place = f'<span class="place" aria-label="Place {row.place}{ranked}">{row.place}</span>\n'
    pointer = f'<span class="pointer">{escape(row.pointer)}</span>\n' if row.pointer else ""
    gone = f'<p class="gone">{gone}</p>\n' if gone else ""
    return f'<div class="recalled-head">\n{place}<h3>{said}</h3>\n{pointer}</div>\n{gone}'


@dataclass(frozen=True, slots=True)
class GivenFacts:
    """
    Attributes:
        facts: Best first.
        gone: The number of others, which were purged since.
    """

    facts: list[Fact]
    gone: int

    @property
    def total(self) -> int:
        return len(self.facts) + self.gone


def given_facts(trace: RecollectionTrace) -> GivenFacts:
    """The given facts, each in the version known at the time of the recall."""
    memories = [given["memory"] for given in trace.facts]
    if not memories:
        return GivenFacts([], 0)
    then = Fact.objects.within(trace.palace).filter(recorded_at__lte=trace.created_at)
    latest = then.latest_versions(memories)
    rows = then.filter(pk__in=latest.values("pk"))
    found = {str(one.memory): one for one in rows.select_related("subject")}
    add_quotes(trace.palace, found.values())
    kept = [found[memory] for memory in memories if memory in found]
    return GivenFacts(kept, len(memories) - len(kept))


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """
    Attributes:
        came: The outcome of the last try, in words; empty without one.
        is_found: Whether it was among the first five.
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
        messages.success(request, "Removed from the case.")
    return redirect("recall_cases")


def _figure(name: str, value: float) -> str:
    """A share in per cent; the mean reciprocal rank as it is."""
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
