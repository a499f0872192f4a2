"""Days as people write them in a form, and the moments they stand for."""

from __future__ import annotations

from datetime import date, datetime, time

from django.utils import timezone

from palace.errors import PalaceError
from palace.storable import storable_time


class BadDay(PalaceError):
    code = "bad_day"

    def __init__(self, text: str) -> None:
        super().__init__(f"“{text[:40]}” is no day. Write it like 2024-05-31.")


def read_day(text: str) -> date | None:
    """
    Raises:
        BadDay: something is written there, but no day.
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
    """The last moment of a day in the reader's time zone: what began that day was so by then."""
    return storable_time(datetime.combine(day, time.max, timezone.get_current_timezone()))
