"""Context format: the lines of the block for hits, facts and turns, whole or shortened."""

from __future__ import annotations

from typing import Protocol, runtime_checkable
from uuid import UUID

from django.utils import timezone

from palace.models import Drawer
from palace.models.aaak import Pointer
from palace.recall.context_escaping import label, on_one_line, quoted

# Characters shown of a turn that does not fit whole.
TURN_CHARS = 400


class Packable(Protocol):
    """A drawer, its pointer, and the passage that answers the question best."""

    @property
    def drawer(self) -> Drawer: ...
    @property
    def pointer(self) -> Pointer: ...
    @property
    def passage(self) -> tuple[int, int]: ...


@runtime_checkable
class PackableFact(Protocol):
    """A fact; `dates` is its validity as shown, such as "until May 2024", or empty."""

    @property
    def memory(self) -> UUID: ...
    @property
    def pointer(self) -> Pointer | None: ...
    @property
    def text(self) -> str: ...
    @property
    def dates(self) -> str: ...


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
    return f"- {cited}{on_one_line(fact.text)}{dates}"


def carried_line(line: Packable | PackableFact) -> tuple[str, ...]:
    """The line as shown before: for a hit, its passage only."""
    return (fact_line(line),) if isinstance(line, PackableFact) else hit_lines(line)[-1:]


def turn_lines(turn: PackableTurn) -> tuple[str, ...]:
    """The turn's lines, longest first."""
    who = label(turn.speaker) or label(turn.role)
    text = on_one_line(turn.text)
    whole = f"{who}: {text}\n"
    if len(text) <= TURN_CHARS:
        return (whole,)
    return whole, f"{who}: {text[:TURN_CHARS].rstrip()} […]\n"


def hit_lines(hit: Packable) -> tuple[str, ...]:
    """The hit's lines, longest first."""
    drawer, (start, end) = hit.drawer, hit.passage
    whole = _line(hit, drawer.text)
    if (start, end) == (0, len(drawer.text)):
        return (whole,)
    before, after = "[…] " * (start > 0), " […]" * (end < len(drawer.text))
    return whole, _line(hit, f"{before}{drawer.text[start:end].strip()}{after}")


def _line(hit: Packable, text: str) -> str:
    drawer = hit.drawer
    said = timezone.localtime(drawer.said_at).strftime("%a %d %b %Y, %H:%M")
    who = label(drawer.speaker) or label(drawer.role)
    return f"[{hit.pointer}] {said} · {who}: {quoted(text)}\n"
