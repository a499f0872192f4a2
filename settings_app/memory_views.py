"""The settings of memory, and of the model that is connected; and what models cost.

The page of memory shows the stages of recall with their measured costs and gains.
`manage.py ablate --stages --write` measures and stores them in a file, because settings must not
import recall. The page of costs shows a year's calls, tokens and dollars, by month and purpose.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.debug import sensitive_post_parameters

from llm import chat, sent, usage
from llm.errors import LLMError
from llm.models import Usage
from llm.providers import Endpoint
from llm.usage import MonthlyUsage, Totals
from settings_app.memory_form import ON_GENERAL_PAGE, ON_MODEL_PAGE, MemoryForm
from settings_app.models import MemorySettings, settings_for_update, settings_of
from settings_app.pages import (
    PageRequest,
    no_variables_in_reports,
    refuse_stale,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
    stored_values,
)
from settings_app.row_tags import dollars

MEASURED = Path(__file__).with_name("recall_stages.json")
GENERAL = "settings_app/settings.html"
MODEL = "settings_app/model.html"
NO_MODEL = "There is no model to try: replies quote what you said, word for word."


@dataclass(frozen=True, slots=True)
class StageShown:
    """
    Attributes:
        is_on: Whether the default recipe has it.
        ms: What it adds to a recall, in milliseconds; None if it was not measured.
        points: What it adds to the share of the messages found, in points of a hundred.
    """

    name: str
    help: str
    is_on: bool
    ms: float | None = None
    points: float | None = None

    @property
    def costs(self) -> str:
        """Milliseconds; what is measured as less than one is no more than the measuring is off."""
        if self.ms is None:
            return ""
        return f"{self.ms:.0f}" if self.ms >= 1 else "under 1"

    @property
    def gives(self) -> str:
        """Points; a minus is one that is printed as such."""
        return "" if self.points is None else f"{self.points:z.1f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        questions: How many were asked.
        ms: The median recall with all stages that are on.
    """

    questions: int
    ms: float
    stages: tuple[StageShown, ...]


@cache
def measured_stages() -> Measured:
    found = json.loads(MEASURED.read_text(encoding="utf-8"))
    stages = (
        StageShown(row["name"], row["help"], row["on"], row.get("ms"), row.get("points"))
        for row in found["stages"]
    )
    return Measured(found["questions"], found["ms"], tuple(stages))


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of testing a model."""

    works: bool
    sentence: str


@signed_in_form
def memory_settings(request: PageRequest) -> HttpResponse:
    """The page of memory's settings."""
    if request.method != "POST":
        return _page(request, GENERAL, MemoryForm(instance=settings_of(request.user.pk)))
    form = _saved_form(request, ON_GENERAL_PAGE)
    if not form.is_valid():
        return _page(request, GENERAL, form, status=400)
    messages.success(request, "Saved.")
    return redirect("settings")


@no_variables_in_reports
@sensitive_post_parameters("api_key")
@signed_in_form
def model_settings(request: PageRequest) -> HttpResponse:
    """The page of provider, model and key. A new provider is sent nothing without consent."""
    if request.method != "POST":
        return _page(request, MODEL, MemoryForm(instance=settings_of(request.user.pk)))
    form = _saved_form(request, ON_MODEL_PAGE)
    if not form.is_valid():
        return _page(request, MODEL, form, status=400)
    if form.moves and form.asks_elsewhere:
        messages.success(request, _saved(form, "Saved, and not connected yet."))
        return redirect("model_uses")
    messages.success(request, _saved(form, "Saved."))
    return redirect("model_settings")


def _saved_form(request: PageRequest, names: Sequence[str]) -> MemoryForm:
    """The form with these fields as posted and all others as saved; stored if it is valid."""
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        stored = stored_values(MemoryForm(instance=chosen), names)
        form = MemoryForm(_posted(request.POST, chosen, names), instance=chosen)
        refuse_stale(request, form, stored, names)
        if form.is_valid():
            form.store()
    return form


def _posted(posted: QueryDict, chosen: MemorySettings, names: Sequence[str]) -> dict[str, Any]:
    form = MemoryForm(instance=chosen)
    others = {name: value for name, value in form.initial.items() if name not in names}
    return {**others, **{name: posted[name] for name in names if name in posted}}


@no_variables_in_reports
@sensitive_post_parameters("api_key")
@signed_in_action
def try_model(request: PageRequest) -> HttpResponse:
    """Ask the model that is in the form, saved or not, and say how it went."""
    chosen = settings_of(request.user.pk)
    form = MemoryForm(_posted(request.POST, chosen, ON_MODEL_PAGE), instance=chosen)
    tried = _tried(form, request.user.pk)
    if request.htmx:
        return render(request, f"{MODEL}#trial", {"tried": tried})
    return _page(request, MODEL, form, tried=tried)


@signed_in_action
def remove_key(request: PageRequest) -> HttpResponse:
    with transaction.atomic():
        chosen = settings_for_update(request.user.pk)
        if chosen.has_key:
            chosen.set_key("")
            chosen.save(update_fields=["sealed_key", "changed_at"])
    if request.htmx:
        form = MemoryForm(instance=chosen)
        return render(request, f"{MODEL}#key", {"form": form, "removed": True})
    messages.success(request, "The key was removed.")
    return redirect("model_settings")


def _page(
    request: PageRequest,
    template: str,
    form: MemoryForm,
    *,
    status: int = 200,
    tried: Tried | None = None,
) -> HttpResponse:
    # The form may have changed its own copy.
    saved = settings_of(request.user.pk) if form.is_bound else form.instance
    names = ON_MODEL_PAGE if template == MODEL else ON_GENERAL_PAGE
    context = {
        "form": form,
        "saved": saved,
        "in_use": saved.connection(),
        "tried": tried,
        "measured": measured_stages(),
        "stored": stored_values(MemoryForm(instance=saved), names),
    }
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _saved(form: MemoryForm, said: str) -> str:
    if form.ignores_key:
        return f"{said} The key was not kept, as no provider of your own is chosen."
    if form.drops_key:
        return f"{said} The key of the provider before was removed."
    return said


def _tried(form: MemoryForm, owner_id: int) -> Tried:
    if form.model_errors:
        return Tried(works=False, sentence=" ".join(form.model_errors))
    candidate: MemorySettings = form.instance
    try:
        endpoint = candidate.endpoint()
        if endpoint is None:
            return Tried(works=False, sentence=NO_MODEL)
        return Tried(works=True, sentence=_asked(endpoint, owner_id))
    except LLMError as error:
        return Tried(works=False, sentence=str(error))


def _asked(endpoint: Endpoint, owner_id: int) -> str:
    started = time.monotonic()
    with sent.made_of([f"{sent.INSTRUCTIONS}:test"]):
        chat.try_out(endpoint, owner_id=owner_id)
    return f"{endpoint} works: it answered in {time.monotonic() - started:.1f} s."


TEMPLATE = "settings_app/costs.html"


@dataclass(frozen=True, slots=True)
class Measure:
    """What the bars show: calls, tokens or cost."""

    name: str
    label: str
    of: Callable[[Totals], Decimal | int]
    written: Callable[[Totals], str]


def written_cost(totals: Totals) -> str:
    return "not known" if totals.is_unknown else dollars(totals.cost_usd)


COST = Measure("cost", "Cost", lambda totals: totals.cost_usd, written_cost)
TOKENS = Measure("tokens", "Tokens", lambda totals: totals.tokens, lambda t: f"{t.tokens:,}")
CALLS = Measure("calls", "Calls", lambda totals: totals.calls, lambda t: f"{t.calls:,}")
MEASURES = {measure.name: measure for measure in (COST, TOKENS, CALLS)}


@signed_in_page
def costs(request: PageRequest) -> HttpResponse:
    now = timezone.localtime()
    first = usage.first_call(request.user.pk)
    years = range(now.year, (first or now).year - 1, -1)
    year, error = _asked_year(request.GET.get("year", ""), years)
    spent = year_of(usage.by_month(request.user.pk, year) if first else [])
    measure = _asked_measure(request.GET.get("show", ""), spent)
    last_month = now.month if year == now.year else 12
    context = {
        "error": error,
        "year": year,
        "years": years,
        "spent": spent,
        "measure": measure,
        "measures": MEASURES.values(),
        "bars": spent.bars(year, last_month, measure),
        "ever": first is not None,
        "zone": timezone.get_current_timezone_name(),
    }
    status = 400 if error else 200
    return render_page_or_part(request, TEMPLATE, "costs", context, status=status)


def _asked_year(asked: str, years: range) -> tuple[int, str]:
    """The year to show, and the error if the requested one is invalid."""
    if not asked:
        return years[0], ""
    if asked.isdecimal() and len(asked) == 4 and int(asked) in years:
        return int(asked), ""
    return years[0], "There are no figures of that year. Choose one of the list."


def _asked_measure(asked: str, spent: Year) -> Measure:
    """The requested measure; by default cost, if any is known."""
    return MEASURES.get(asked) or (COST if spent.totals.cost_usd else CALLS)


@dataclass(frozen=True, slots=True)
class Segment:
    """A purpose's part of a bar; start and width in percent of the longest bar."""

    purpose: Usage.Purpose
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    month: date
    segments: list[Segment]
    written: str


@dataclass(frozen=True, slots=True)
class Month:
    month: date
    rows: list[MonthlyUsage]
    totals: Totals


@dataclass(frozen=True, slots=True)
class Year:
    """A year's calls.

    Attributes:
        months: Those with calls, January first.
        purposes: Those with calls, each with what it came to.
    """

    months: list[Month]
    purposes: list[tuple[Usage.Purpose, Totals]]
    totals: Totals

    def bars(self, year: int, last_month: int, measure: Measure) -> list[Bar]:
        """A bar for each month from January to the last one, empty months included."""
        by_number = {month.month.month: month for month in self.months}
        longest = max((measure.of(month.totals) for month in self.months), default=0)
        return [
            Bar(
                date(year, number, 1),
                _segments(by_number[number].rows, measure, longest) if number in by_number else [],
                measure.written(by_number[number].totals) if number in by_number else "",
            )
            for number in range(1, last_month + 1)
        ]


def year_of(rows: Sequence[MonthlyUsage]) -> Year:
    """The year of these rows, which are ordered by month."""
    months = [
        Month(month, rows, _sum(rows))
        for month, rows in (
            (month, list(of_month)) for month, of_month in groupby(rows, lambda row: row.month)
        )
    ]
    purposes = [
        (purpose, _sum([row for row in rows if row.purpose == purpose]))
        for purpose in Usage.Purpose
        if any(row.purpose == purpose for row in rows)
    ]
    return Year(months, purposes, _sum(rows))


def _sum(rows: Sequence[MonthlyUsage]) -> Totals:
    return sum((row.totals for row in rows), Totals())


def _segments(
    rows: Sequence[MonthlyUsage], measure: Measure, longest: Decimal | int
) -> list[Segment]:
    segments, start = [], 0.0
    for row in rows:
        width = 100 * float(measure.of(row.totals)) / float(longest or 1)
        if width:
            segments.append(Segment(row.purpose, round(start, 2), round(width, 2)))
        start += width
    return segments
