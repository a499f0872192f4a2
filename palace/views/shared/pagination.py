"""Lists in pages: counted, with the number of pages, or uncounted, with whether more follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

PAGE_SIZE = 30

M = TypeVar("M", bound=Any)

# The highest page number of an uncounted list.
MOST_PAGES = 2000


class CountedPage(Generic[M]):
    """One page of a list whose rows are counted.

    Args:
        total: Their number, if it is known.
    """

    def __init__(self, rows: QuerySet[M], number: str | None, *, total: int | None = None) -> None:
        pages = Paginator(rows, PAGE_SIZE)
        if total is not None:
            pages.count = total
        # A page number out of range leads to the nearest page, so that old links work.
        self.page: Page[M] = pages.get_page(number)

    @property
    def rows(self) -> list[M]:
        return list(self.page)

    @property
    def total(self) -> int:
        return self.page.paginator.count

    @property
    def next_count(self) -> int:
        """The number of rows on the next page."""
        return min(PAGE_SIZE, self.total - self.page.end_index())


class UncountedPage(Generic[M]):
    """The first `size` rows after `skipped` ones.

    Attributes:
        has_next: Whether there are more; one more row is read to know.
    """

    def __init__(
        self, rows: QuerySet[M] | Sequence[M], *, size: int = PAGE_SIZE, skipped: int = 0
    ) -> None:
        found: Sequence[M] = list(rows[skipped : skipped + size + 1])
        self.rows = list(found[:size])
        self.has_next = len(found) > size


class NumberedPage(UncountedPage[M]):
    """Page `number` of `rows`, from 1; anything that is not a number is page 1."""

    def __init__(
        self, rows: QuerySet[M] | Sequence[M], number: str | None, *, size: int = PAGE_SIZE
    ) -> None:
        self.number = page_number(number)
        super().__init__(rows, size=size, skipped=(self.number - 1) * size)

    @property
    def next_number(self) -> int:
        return self.number + 1


def page_number(number: str | None) -> int:
    """From 1; anything that is not a number is page 1."""
    is_page = number is not None and number.isascii() and number.isdigit() and len(number) < 6
    return min(max(int(number or 1), 1), MOST_PAGES) if is_page else 1
