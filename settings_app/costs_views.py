"""The page of costs."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers

from llm import spending
from settings_app.access import PageRequest, signed_in_page
from settings_app.costs import CALLS, COST, MEASURES, Measure, Year, year_of

TEMPLATE = "settings_app/costs.html"


@signed_in_page
def costs(request: PageRequest) -> HttpResponse:
    now = timezone.localtime()
    first = spending.first_call(request.user.pk)
    years = range(now.year, (first or now).year - 1, -1)
    year, error = _asked_year(request.GET.get("year", ""), years)
    spent = year_of(spending.by_month(request.user.pk, year) if first else [])
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
    part = request.htmx and not request.htmx.history_restore_request
    response = render(
        request, f"{TEMPLATE}#costs" if part else TEMPLATE, context, status=400 if error else 200
    )
    patch_vary_headers(response, ["HX-Request"])
    return response


def _asked_year(asked: str, years: range) -> tuple[int, str]:
    """The year to show, and what was wrong with the one that was asked for."""
    if not asked:
        return years[0], ""
    if asked.isdecimal() and len(asked) == 4 and int(asked) in years:
        return int(asked), ""
    return years[0], "There are no figures of that year. Choose one of the list."


def _asked_measure(asked: str, spent: Year) -> Measure:
    """Cost, unless another is asked for or there is none to show."""
    return MEASURES.get(asked) or (COST if spent.totals.cost_usd else CALLS)
