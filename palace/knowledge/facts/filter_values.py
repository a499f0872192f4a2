"""Check the values of filters; errors say what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any
from uuid import UUID

from language.errors import BadFilter
from language.storable import is_storable, storable_time
from palace.models import Fact

MOST_CHARS = 1000
MOST_VALUES = 200
MOST_FIELD_CHARS = 200
_SHOWN_CHARS = 60

Scalar = str | int | float | bool


def quoted(value: object) -> str:
    """A value as an error quotes it."""
    if isinstance(value, str):
        printable = "".join(sign for sign in value[:_SHOWN_CHARS] if sign.isprintable())
        return f"“{printable}”"
    written = repr(value)
    return written if len(written) <= _SHOWN_CHARS else f"{written[:_SHOWN_CHARS]}…"


def check_field(field: object) -> None:
    """
    Raises:
        BadFilter: no field or metadata key can have this name.
    """
    if not isinstance(field, str) or not field.strip():
        raise BadFilter(f"{quoted(field)} is no field; name one of a memory, or a metadata key.")
    if len(field) > MOST_FIELD_CHARS or not is_storable(field):
        raise BadFilter(
            f"{quoted(field)} is no field: names have up to {MOST_FIELD_CHARS} characters that can "
            "be stored."
        )


def refuse(field: str, operator: str, refused: Collection[str], because: str) -> None:
    """
    Raises:
        BadFilter: this operator says nothing of such a field.
    """
    if operator in refused:
        others = [name for name in ("eq", "gt", "contains") if name not in refused]
        raise BadFilter(
            f"{operator} cannot be asked of {quoted(field)}, which {because}; "
            f"use {' or '.join(others)} and the like."
        )


def text(field: str, value: object, *, empty_for_none: bool = False) -> str:
    if value is None and empty_for_none:
        return ""
    if not isinstance(value, str):
        raise BadFilter(f"{quoted(field)} is compared with text, not with {quoted(value)}.")
    if len(value) > MOST_CHARS or not is_storable(value):
        raise BadFilter(
            f"The text that {quoted(field)} is compared with has up to {MOST_CHARS} characters, "
            "and none that cannot be stored (NUL or a lone surrogate)."
        )
    return value


def identifier(field: str, value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise BadFilter(
            f"{quoted(field)} is compared with the id of a memory, not with {quoted(value)}."
        ) from None


def number(field: str, value: object) -> int | float:
    if not is_number(value):
        raise BadFilter(f"{quoted(field)} is compared with a number, not with {quoted(value)}.")
    return value  # type: ignore[return-value]  # Checked in the line above.


def is_number(value: object) -> bool:
    """Whether it is one that JSON can write and the database compare."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def moment(field: str, value: object) -> datetime:
    """A time; without a zone it is in UTC, and a date is its first moment."""
    found = read_moment(value)
    if found is None:
        raise BadFilter(
            f"{quoted(field)} is compared with a time such as 2024-01-31 or "
            f"2024-01-31T09:30:00+01:00, not with {quoted(value)}."
        )
    return found


def read_moment(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    return storable_time(value if value.tzinfo else value.replace(tzinfo=UTC))


def several(field: str, value: object) -> list[object]:
    """The set that `in` and `nin` look into; an empty one holds nothing."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | set | frozenset):
        raise BadFilter(
            f"in and nin take a list of values for {quoted(field)}, not {quoted(value)}."
        )
    if len(value) > MOST_VALUES:
        raise BadFilter(f"{len(value)} values for {quoted(field)} are too many; {MOST_VALUES} fit.")
    return list(value)


def scalar(field: str, value: object) -> Scalar:
    """What a metadata key can be equal to."""
    if isinstance(value, bool):
        return value
    if is_number(value):
        return number(field, value)
    if isinstance(value, str):
        return text(field, value)
    raise BadFilter(
        f"{quoted(field)} is compared with text, a number, true, false or null, "
        f"not with {quoted(value)}."
    )


def check_type(wanted: str) -> None:
    """
    Raises:
        BadFilter: memories of such a type do not exist.
    """
    if wanted not in Fact.Type.values:
        raise BadFilter(
            f"{quoted(wanted)} is no type of memory; there are {', '.join(Fact.Type.values)}."
        )


def as_json(filters: Mapping[str, Any]) -> dict[str, Any]:
    """A filter that has been understood, in what JSON can write: it means the same."""
    written: dict[str, Any] = json.loads(json.dumps(dict(filters), default=_plain))
    return written


def _plain(value: object) -> object:
    if isinstance(value, date):  # A datetime is one.
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else list(value)  # type: ignore[call-overload]
