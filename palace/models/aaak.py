"""The AAAK pointer `§ W-042/R-11/D-007` and its semantic tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from palace.errors import BadPointer

# Tag letters and their meanings.
TAGS = {"p": "people", "l": "locations", "e": "events", "i": "items", "t": "time"}

_POINTER = re.compile(r"\s*(?:§\s*)?W-0*(\d{1,9})/R-0*(\d{1,9})/D-0*(\d{1,9})\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Pointer:
    """A drawer's address: the numbers of its wing (0: the unsorted one), its room and itself."""

    wing: int
    room: int
    drawer: int

    def __str__(self) -> str:
        return f"§ W-{self.wing:03}/R-{self.room:02}/D-{self.drawer:03}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pointer as written; the section sign, leading zeros and case are optional.

        Raises:
            BadPointer: `text` is not a pointer.
        """
        match = _POINTER.fullmatch(text)
        if match is None:
            raise BadPointer(text)
        return cls(*map(int, match.groups()))


def format_tags(tags: Mapping[str, Sequence[str]]) -> str:
    """`@p Derek, Ann @l Lisbon`: letters in the order of `TAGS`, without empty ones."""
    return " ".join(f"@{letter} {', '.join(tags[letter])}" for letter in TAGS if tags.get(letter))
