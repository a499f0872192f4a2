"""The page of costs: a year's calls, tokens and dollars, by month and purpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby

from django.http import HttpResponse
from django.utils import timezone

from llm import usage
from llm.models import Usage
from llm.usage import MonthlyUsage, Totals
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page
from settings_app.row_tags import dollars

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
