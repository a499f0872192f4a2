"""Parts of long lists that nobody counts: as many rows as a page holds, and whether more follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet

from settings_app.rendering import PAGE_SIZE

M = TypeVar("M", bound=Model)

# No list is walked further than this by page numbers.
MOST_PAGES = 2000


class Uncounted(Generic[M]):
    """The first `size` of `rows`, or of what comes after `skipped` of them.

    Attributes:
        has_next: Whether there are more; one row is read ahead to tell.
    """

    def __init__(self, rows: QuerySet[M], *, size: int = PAGE_SIZE, skipped: int = 0) -> None:
        found: Sequence[M] = list(rows[skipped : skipped + size + 1])
        self.rows = list(found[:size])
        self.has_next = len(found) > size


class Numbered(Uncounted[M]):
    """Page `number` of `rows`, counted from 1; what is no number is the first."""

    def __init__(self, rows: QuerySet[M], number: str | None, *, size: int = PAGE_SIZE) -> None:
        self.number = _page(number)
        super().__init__(rows, size=size, skipped=(self.number - 1) * size)

    @property
    def next_number(self) -> int:
        return self.number + 1


def _page(number: str | None) -> int:
    is_page = number is not None and number.isascii() and number.isdigit() and len(number) < 6
    return min(max(int(number or 1), 1), MOST_PAGES) if is_page else 1
