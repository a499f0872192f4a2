"""From records to rows: validated fields, the keys of restored rows, and bulk inserts by COPY."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid5

from django.db import models

from palace.models import Palace

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")
EntityKey = tuple[str, str]  # Kind and slug.
MessageKey = tuple[str, str, str]  # Source, conversation and id there.


class Fields:
    """Reads a record's fields; raises `ValueError` for invalid ones."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        return _is_a(str, name, self._fields.get(name))

    def text_or_none(self, name: str) -> str | None:
        return None if self._fields.get(name) is None else self.text(name)

    def one_of(self, name: str, allowed: Collection[str]) -> str:
        value = self.text(name)
        if value not in allowed:
            raise ValueError(f"{name} is none of {', '.join(filter(None, allowed))}")
        return value

    def is_so(self, name: str) -> bool:
        return _is_a(bool, name, self._fields.get(name))

    def is_so_if_any(self, name: str) -> bool:
        """False where an older version of Loci did not write the field."""
        return self._fields.get(name) is not None and self.is_so(name)

    def count(self, name: str) -> int:
        """A whole number from 0."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} is no whole number from 0")
        return value

    def count_or_none(self, name: str) -> int | None:
        return None if self._fields.get(name) is None else self.count(name)

    def share(self, name: str) -> float:
        """A number from 0 to 1."""
        value = self._fields.get(name)
        # NaN is not within them either.
        if isinstance(value, int | float) and 0 <= value <= 1:
            return float(value)
        raise ValueError(f"{name} is no number from 0 to 1")

    def uuid(self, name: str) -> UUID:
        return UUID(self.text(name))

    def time(self, name: str) -> datetime:
        moment = datetime.fromisoformat(self.text(name))
        if moment.tzinfo is None:
            raise ValueError(f"{name} names no zone")
        return moment

    def time_or_none(self, name: str) -> datetime | None:
        return None if self._fields.get(name) is None else self.time(name)

    def texts(self, name: str) -> list[str]:
        return [_is_a(str, name, each) for each in self.items(name)]

    def texts_if_any(self, name: str) -> list[str]:
        """Empty where an older version of Loci did not write the field."""
        return [] if self._fields.get(name) is None else self.texts(name)

    def items(self, name: str) -> list[Any]:
        return _is_a(list, name, self._fields.get(name))

    def records(self, name: str) -> list[Fields]:
        return [Fields(_is_a(dict, name, each)) for each in self.items(name)]

    def record(self, name: str) -> Fields:
        return Fields(_is_a(dict, name, self._fields.get(name)))

    def record_or_none(self, name: str) -> Fields | None:
        return None if self._fields.get(name) is None else self.record(name)

    def mapping(self, name: str) -> dict[str, Any]:
        return _is_a(dict, name, self._fields.get(name))

    def mapping_or_none(self, name: str) -> dict[str, Any] | None:
        return None if self._fields.get(name) is None else self.mapping(name)

    def entity(self) -> EntityKey:
        return self.text("kind"), self.text("slug")

    def span_in(self, text: str) -> tuple[int, int]:
        """From `start` to `end`, in characters of the text."""
        start, end = self.count("start"), self.count("end")
        if not start <= end <= len(text):
            raise ValueError("start and end are not within the text")
        return start, end

    def message(self) -> MessageKey:
        return self.text("source"), self.text("conversation"), self.text("message")


def as_json(value: object) -> str | None:
    """For a column that holds JSON."""
    return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)


def _is_a(kind: type[T], name: str, value: object) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is not of its kind")  # noqa: TRY004 - of data, not an argument.
    return value


@dataclass(slots=True)
class RestoredKeys:
    """The primary keys of restored rows, by their ids in the records.

    Attributes:
        renames: Whether to assign new ids, derived from the old ones.
        wings, rooms: By number.
        closets: By their room's number and their slug.
        entities: By kind and slug.
    """

    palace: Palace
    renames: bool
    wings: dict[int, int] = field(default_factory=dict)
    rooms: dict[int, int] = field(default_factory=dict)
    closets: dict[tuple[int, str], int] = field(default_factory=dict)
    entities: dict[EntityKey, int] = field(default_factory=dict)

    def id_of(self, fields: Fields, name: str = "id") -> UUID:
        original = fields.uuid(name)
        return uuid5(self.palace.uuid, str(original)) if self.renames else original

    def wing(self, fields: Fields) -> int:
        return _found(self.wings, fields.count("wing"), "wing")

    def room(self, fields: Fields) -> int:
        return _found(self.rooms, fields.count("room"), "room")

    def closet(self, fields: Fields) -> int | None:
        slug = fields.text_or_none("closet")
        return slug if slug is None else _found(self.closets, (fields.count("room"), slug), "topic")

    def entity(self, fields: Fields) -> int:
        return _found(self.entities, fields.entity(), "person or thing")


def _found(keys: Mapping[Key, int], key: Key, what: str) -> int:
    if key not in keys:
        raise ValueError(f"it names a {what} that is not there, {key!r}")
    return keys[key]


def present(model: type[models.Model], palace: Palace, uuids: Iterable[object]) -> set[object]:
    """The ids that exist in the palace."""
    rows = model._default_manager.filter(palace=palace, uuid__in=list(uuids))
    return set(rows.values_list("uuid", flat=True))
