"""The lines of the context block: one for each fact, hit and turn, escaped, whole or shortened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from itertools import islice
from typing import Protocol, runtime_checkable
from uuid import UUID

from palace.models import Drawer, Pointer
from palace.recall.context_escaping import label, on_one_line, quoted

# Ends the line of a fact that must not be acted on without permission.
ASK_FIRST = "Ask the user first, each time."
# The note of a hit after one with the same; true as well if that one is dropped.
SAID_BEFORE = "no longer so"
# Characters shown of a turn that does not fit whole.
TURN_CHARS = 400
_DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Packable(Protocol):
    """A drawer, its pointer, its best passage, and what of it no longer holds (`note`, or "")."""

    @property
    def drawer(self) -> Drawer: ...
    @property
    def pointer(self) -> Pointer: ...
    @property
    def passage(self) -> tuple[int, int]: ...
    @property
    def note(self) -> str: ...


@runtime_checkable
class PackableFact(Protocol):
    """A fact.

    `dates` is its validity as shown, such as "until May 2024", or empty; `asks_first` says whether
    an assistant must ask the user before it acts on the fact.
    """

    @property
    def memory(self) -> UUID: ...
    @property
    def pointer(self) -> Pointer | None: ...
    @property
    def text(self) -> str: ...
    @property
    def dates(self) -> str: ...
    @property
    def asks_first(self) -> bool: ...


class PackableTurn(Protocol):
    """One of the latest messages, with its role and an optional speaker name."""

    @property
    def role(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def text(self) -> str: ...


def fact_line(fact: PackableFact) -> str:
    cited = f"[{fact.pointer}] " if fact.pointer else ""
    dates = f" ({on_one_line(fact.dates)})" if fact.dates else ""
    permission = f" ({ASK_FIRST})" if fact.asks_first else ""
    return f"- {cited}{on_one_line(fact.text)}{dates}{permission}"


def carried_line(line: Packable | PackableFact, zone: tzinfo) -> tuple[str, ...]:
    """The line as shown before: for a hit, its passage only."""
    if isinstance(line, PackableFact):
        return (fact_line(line),)
    return hit_lines(line, zone, line.note)[-1:]


def turn_lines(turn: PackableTurn) -> tuple[str, ...]:
    """The turn's lines, longest first."""
    who = label(turn.speaker) or label(turn.role)
    text = on_one_line(turn.text)
    whole = f"{who}: {text}\n"
    if len(text) <= TURN_CHARS:
        return (whole,)
    return whole, f"{who}: {text[:TURN_CHARS].rstrip()} […]\n"


def hit_lines(hit: Packable, zone: tzinfo, note: str, most: int = 2) -> tuple[str, ...]:
    """The hit's lines, each with the note, longest first, up to `most`."""
    noted = f"({on_one_line(note)})\n" if note else ""
    return tuple(f"{line}{noted}" for line in islice(lines_without_note(hit, zone), most))


def lines_without_note(hit: Packable, zone: tzinfo) -> Iterator[str]:
    """The hit's lines, longest first, without the note of what no longer holds."""
    drawer, (start, end) = hit.drawer, hit.passage
    yield _line(hit, drawer.text, zone)
    if (start, end) != (0, len(drawer.text)):
        before, after = "[…] " * (start > 0), " […]" * (end < len(drawer.text))
        yield _line(hit, f"{before}{drawer.text[start:end].strip()}{after}", zone)


def _line(hit: Packable, text: str, zone: tzinfo) -> str:
    drawer = hit.drawer
    who = label(drawer.speaker) or label(drawer.role)
    return f"[{hit.pointer}] {_said(drawer.said_at, zone)} · {who}: {quoted(text)}\n"


def _said(at: datetime, zone: tzinfo) -> str:
    """Such as "Tue 05 Mar 2024, 17:30", in English everywhere; `strftime` takes twice as long."""
    at = at.astimezone(zone)
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{day} {at.day:02} {month} {at.year}, {at.hour:02}:{at.minute:02}"
