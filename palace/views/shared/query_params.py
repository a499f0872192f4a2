"""Values in the address of a page: ids, days, and the query string for links."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import Http404
from django.utils import timezone

from language.storable import storable_time
from palace.errors import PalaceError

M = TypeVar("M", bound=Model)


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
    try:
        return rows.filter(uuid=UUID(text)).first() if text else None
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
