"""Maps the ids in records to the primary keys of restored rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID, uuid5

from palace.models import Palace
from palace.transfer.restore.fields import EntityKey, Fields

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Placed:
    """
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
