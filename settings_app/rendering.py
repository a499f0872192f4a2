"""A page, or only the part of it that htmx asked for."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from settings_app.access import PageRequest

PAGE_SIZE = 50

M = TypeVar("M", bound=Model)


class Stretch(Generic[M]):
    """One page of a long list, with what the link to the next one says."""

    def __init__(self, rows: QuerySet[M], number: str | None) -> None:
        # A number that is no page leads to the nearest one: an old link still shows something.
        self.page: Page[M] = Paginator(rows, PAGE_SIZE).get_page(number)

    @property
    def rows(self) -> list[M]:
        return list(self.page)

    @property
    def total(self) -> int:
        return self.page.paginator.count

    @property
    def next_count(self) -> int:
        """How many rows the next page holds."""
        return min(PAGE_SIZE, self.total - self.page.end_index())


def render_page_or_part(
    request: PageRequest, template: str, part: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """`template` whole, or its partial `part` for htmx; a restored history entry is whole."""
    wants_part = request.htmx and not request.htmx.history_restore_request
    name = f"{template}#{part}" if wants_part else template
    response = render(request, name, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
