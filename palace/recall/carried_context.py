"""What was put before a model as the ledger has it, and as lines of the block again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from palace.aaak import Pointer
from palace.models import Drawer, Fact, Palace
from palace.recall.facts import KnownFact, founded
from palace.storable import digest
from palace.working.ledger import Entry

# What is put before a model, by kind: items of the ledger begin with it.
DRAWER, FACT = "drawer:", "fact:"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A drawer as it stood in the block: all of it, or its best passage."""

    drawer: Drawer
    passage: tuple[int, int]

    @property
    def pointer(self) -> Pointer:
        return self.drawer.pointer


@dataclass(frozen=True, slots=True)
class Carried:
    """A line that stays in the block from earlier.

    Attributes:
        drawer: The one it shows or, of a fact, cites.
    """

    entry: Entry
    drawer: UUID | None
    line: Stretch | KnownFact


# The drawer it shows or cites, and the line.
_Line = tuple[UUID | None, Stretch | KnownFact]


def of_drawer(drawer: Drawer, turn: int | None) -> Entry:
    return Entry(f"{DRAWER}{drawer.uuid}", digest=digest(drawer.text), turn=turn)


def of_fact(fact: Fact, turn: int | None, dates: str) -> Entry:
    """Its version tells whether it is still held, and until when it is so."""
    until = fact.valid_to.isoformat() if fact.valid_to else ""
    return Entry(
        f"{FACT}{fact.uuid}",
        digest=digest(fact.text),
        version=f"{fact.fate} {until}".strip(),
        turn=turn,
        told=dates,
    )


def stands_for(held: Entry, entry: Entry) -> bool:
    """Whether the words are those that were shown; who marks an item by name alone means any."""
    return not held.digest or held.is_same(entry)


def still_before(palace: Palace, entries: Mapping[str, Entry]) -> list[Carried]:
    """Those drawers and facts that still stand as they were shown.

    The newest first, and of what was given with one message the best.
    What is in the trash, purged, corrected or no longer held is not among them.
    """
    lines = _drawers(palace, entries) | _facts(palace, entries)
    stay = [Carried(entries[item], *line) for item, line in lines.items()]
    # Redis keeps no order.
    return sorted(stay, key=lambda each: (-_age(each.entry), each.entry.place, each.entry.item))


def _age(entry: Entry) -> int:
    return -1 if entry.turn is None else entry.turn


def _drawers(palace: Palace, entries: Mapping[str, Entry]) -> dict[str, _Line]:
    """By item."""
    wanted = _ids(entries, DRAWER)
    if not wanted:
        return {}
    lines: dict[str, _Line] = {}
    for drawer in Drawer.objects.within(palace).kept().with_place().filter(uuid__in=wanted):
        entry = entries[wanted[drawer.uuid]]
        if stands_for(entry, of_drawer(drawer, None)):
            span = entry.span or (0, len(drawer.text))
            lines[entry.item] = drawer.uuid, Stretch(drawer, span)
    return lines


def _facts(palace: Palace, entries: Mapping[str, Entry]) -> dict[str, _Line]:
    """By item; likewise without those whose words are gone."""
    wanted = _ids(entries, FACT)
    if not wanted:
        return {}
    facts = {fact.pk: fact for fact in Fact.objects.within(palace).filter(uuid__in=wanted)}
    lines: dict[str, _Line] = {}
    for key, (pointer, drawer) in founded(palace, facts, None).items():
        fact = facts[key]
        entry = entries[wanted[fact.uuid]]
        if stands_for(entry, of_fact(fact, None, entry.told)):
            lines[entry.item] = drawer, KnownFact(fact, 0.0, pointer, drawer, entry.told)
    return lines


def _ids(entries: Mapping[str, Entry], kind: str) -> dict[UUID, str]:
    """Ids and items of a kind; anybody may name an item so that it only looks like one."""
    ids: dict[UUID, str] = {}
    for item in entries:
        try:
            named = UUID(item.removeprefix(kind)) if item.startswith(kind) else None
        except ValueError:
            continue
        if named:
            ids[named] = item
    return ids
