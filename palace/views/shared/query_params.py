"""What the address of a page chooses: ids, days and pages of lists; and the query string of links.

A list is counted, with the number of its pages, or uncounted, with whether more follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import Http404, QueryDict
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from language.errors import PalaceError
from language.storable import storable_label, storable_time
from palace.queries.timeline import Basis
from settings_app.pages import PageRequest

M = TypeVar("M", bound=Model)
BASES: dict[Basis, tuple[str, str]] = {
    "said": ("Said by then", "Only words said until that day count."),
    "true": ("True then", "What was true on that day, also by words said later."),
}
PAGE_SIZE = 30

Row = TypeVar("Row", bound=Any)

# The highest page number of an uncounted list.
MOST_PAGES = 2000


class BadDay(PalaceError):
    code = "bad_day"

    def __init__(self, text: str) -> None:
        super().__init__(f"“{text[:40]}” is no day. Write it like 2024-05-31.")


def read_day(text: str) -> date | None:
    """
    Raises:
        BadDay: the text is neither empty nor a day.
    """
    text = text.strip()
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise BadDay(text) from None


def start_of(day: date) -> datetime:
    """The first moment of a day in the reader's time zone."""
    return storable_time(datetime.combine(day, time.min, timezone.get_current_timezone()))


def end_of(day: date) -> datetime:
    """The last moment of a day in the reader's time zone, so that the whole day counts."""
    return storable_time(datetime.combine(day, time.max, timezone.get_current_timezone()))


def find_by_uuid(rows: QuerySet[M], text: str) -> M | None:
    """The row of this UUID; None if there is no such row, or the text is not a UUID."""
    uuid = read_uuid(text)
    return rows.filter(uuid=uuid).first() if uuid else None


def read_uuid(text: str) -> UUID | None:
    """None if the text is none."""
    try:
        return UUID(text)
    except ValueError:
        return None


def get_by_uuid(rows: QuerySet[M], text: str) -> M:
    """
    Raises:
        Http404: there is no such row, or the text is not a UUID.
    """
    row = find_by_uuid(rows, text)
    if row is None:
        raise Http404
    return row


def query_string(**values: str) -> str:
    """`?name=value&…` without the empty values; empty if all are."""
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def way_back(request: PageRequest) -> str:
    """The page to return to, as sent, or the page that htmx asks from; empty unless it is ours."""
    sent = request.POST if request.method == "POST" else request.GET
    address = sent.get("next", "") or request.htmx.current_url_abs_path or ""
    ours = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    return address if ours and address.startswith("/") else ""


@dataclass(frozen=True, slots=True)
class ChosenDay:
    """A day and what counts of it, from the address.

    Attributes:
        day: None: today.
        error: A sentence about an invalid day.
    """

    day: date | None
    text: str
    basis: Basis
    error: str

    @classmethod
    def read(cls, sent: QueryDict, name: str = "day", *, default: Basis = "said") -> ChosenDay:
        """From the parameters `name` and `basis` of an address."""
        text, day, error = storable_label(sent.get(name, ""))[:40], None, ""
        try:
            day = read_day(text)
        except BadDay as bad:
            error = str(bad)
        basis = next((basis for basis in BASES if basis == sent.get("basis")), default)
        return cls(day, text, basis, error)

    @property
    def moment(self) -> datetime | None:
        """The end of the day."""
        return end_of(self.day) if self.day else None

    @property
    def bases(self) -> list[tuple[str, str, str, bool]]:
        """Name, label and explanation of each basis, and whether it is this one."""
        return [(name, *words, name == self.basis) for name, words in BASES.items()]


class CountedPage(Generic[Row]):
    """One page of a list whose rows are counted.

    Args:
        total: Their number, if it is known.
    """

    def __init__(
        self, rows: QuerySet[Row], number: str | None, *, total: int | None = None
    ) -> None:
        pages = Paginator(rows, PAGE_SIZE)
        if total is not None:
            pages.count = total
        # A page number out of range leads to the nearest page, so that old links work.
        self.page: Page[Row] = pages.get_page(number)

    @property
    def rows(self) -> list[Row]:
        return list(self.page)

    @property
    def total(self) -> int:
        return self.page.paginator.count

    @property
    def next_count(self) -> int:
        """The number of rows on the next page."""
        return min(PAGE_SIZE, self.total - self.page.end_index())


class UncountedPage(Generic[Row]):
    """The first `size` rows after `skipped` ones.

    Attributes:
        has_next: Whether there are more; one more row is read to know.
    """

    def __init__(
        self, rows: QuerySet[Row] | Sequence[Row], *, size: int = PAGE_SIZE, skipped: int = 0
    ) -> None:
        found: Sequence[Row] = list(rows[skipped : skipped + size + 1])
        self.rows = list(found[:size])
        self.has_next = len(found) > size


class NumberedPage(UncountedPage[Row]):
    """Page `number` of `rows`, from 1; anything that is not a number is page 1."""

    def __init__(
        self, rows: QuerySet[Row] | Sequence[Row], number: str | None, *, size: int = PAGE_SIZE
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
