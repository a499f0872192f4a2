"""Narrowing: conditions on the drawers to choose from, resolved before any are ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Exists, OuterRef, Q

from palace.models import Drawer, Mention, Palace
from palace.recall.raw_sql import Keys, isin_sorted

# Who said it: these roles, or the name of a speaker.
ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Narrowing:
    """All conditions have to hold; one that is not set always does.

    Attributes:
        wing: The id of the wing the drawer lies in.
        person: The id of an entity that the drawer mentions.
        since: The first moment at which it may have been said.
        until: The last one. Unlike a recall's `as_of` it changes nothing else.
        speaker: Who said it: one of `ROLES`, or the name of a speaker.
        source: Where its conversation comes from, as in `Room.source`.
    """

    wing: UUID | None = None
    person: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    speaker: str = ""
    source: str = ""

    def __bool__(self) -> bool:
        return self != Narrowing()

    @property
    def record(self) -> dict[str, Any]:
        """As JSON, without what is not set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _as_json(value) for name, value in values.items() if value}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Narrowing:
        """The opposite of `record`."""
        return cls(**{name: _READ.get(name, str)(value) for name, value in record.items()})

    def condition(self, palace: Palace) -> Q:
        """A filter on the palace's drawers."""
        condition = Q()
        if self.wing is not None:
            condition &= Q(room__wing__uuid=self.wing)
        if self.person is not None:
            named = Mention.objects.filter(palace=palace, entity__uuid=self.person)
            condition &= Q(Exists(named.filter(drawer=OuterRef("pk"))))
        if self.since is not None:
            condition &= Q(said_at__gte=self.since)
        if self.until is not None:
            condition &= Q(said_at__lte=self.until)
        if self.source:
            condition &= Q(source=self.source)
        return condition & self._said_by()

    def _said_by(self) -> Q:
        if not self.speaker:
            return Q()
        if self.speaker in ROLES:
            return Q(role=self.speaker)
        return Q(speaker__iexact=self.speaker)


EVERYTHING = Narrowing()
_READ: dict[str, Callable[[str], Any]] = {
    "wing": UUID,
    "person": UUID,
    "since": datetime.fromisoformat,
    "until": datetime.fromisoformat,
}


def _as_json(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def narrowed(palace: Palace, narrowing: Narrowing, only: Keys | None) -> Keys | None:
    """Keys of the drawers that pass, ascending and of `only`; `only` itself without conditions."""
    if not narrowing:
        return only
    drawers = Drawer.objects.within(palace).kept().filter(narrowing.condition(palace)).order_by()
    found = drawers.aggregate(keys=ArrayAgg("pk", default=[]))["keys"]
    keys = np.sort(np.array(found, dtype=np.int64))
    return keys if only is None else keys[isin_sorted(keys, only)]
