"""Carried context: ledger entries of earlier block lines, and the lines rebuilt from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from language.storable import digest
from palace.models import Drawer, Fact, Palace, Pointer
from palace.recall.facts import RecalledFact, recalled_facts
from palace.working.ledger import LedgerEntry

# Prefixes of ledger items, by kind.
DRAWER_ITEM, FACT_ITEM = "drawer:", "fact:"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A drawer as the block showed it: whole, or its best passage."""

    drawer: Drawer
    passage: tuple[int, int]
    note: str = ""

    @property
    def pointer(self) -> Pointer:
        return self.drawer.pointer


@dataclass(frozen=True, slots=True)
class Carried:
    """A line from an earlier block that stays in the block.

    Attributes:
        drawer: The drawer that the line shows, or that its fact cites.
    """

    entry: LedgerEntry
    drawer: UUID | None
    line: Excerpt | RecalledFact


# The drawer shown or cited, and the line.
_Line = tuple[UUID | None, Excerpt | RecalledFact]


def drawer_entry(drawer: Drawer, turn: int | None) -> LedgerEntry:
    return LedgerEntry(f"{DRAWER_ITEM}{drawer.uuid}", digest=digest(drawer.text), turn=turn)


def fact_entry(fact: Fact, turn: int | None, dates: str) -> LedgerEntry:
    """The entry's version contains the fact's fate and the end of its validity."""
    until = fact.valid_to.isoformat() if fact.valid_to else ""
    return LedgerEntry(
        f"{FACT_ITEM}{fact.uuid}",
        digest=digest(fact.text),
        version=f"{fact.fate} {until}".strip(),
        turn=turn,
        told=dates,
    )


def is_unchanged(shown: LedgerEntry, entry: LedgerEntry) -> bool:
    """Whether the text equals the text shown; an entry without a digest matches any text."""
    return not shown.digest or shown.is_same(entry)


def load_carried(palace: Palace, entries: Mapping[str, LedgerEntry]) -> list[Carried]:
    """Load the drawers and facts whose text is unchanged since they were shown.

    Newest message first; within a message, best first. Trashed and purged drawers and corrected
    or inactive facts are left out.
    """
    lines = _drawers(palace, entries) | _facts(palace, entries)
    stay = [Carried(entries[item], *line) for item, line in lines.items()]
    # Redis hashes have no order.
    return sorted(stay, key=lambda each: (-_age(each.entry), each.entry.place, each.entry.item))


def _age(entry: LedgerEntry) -> int:
    return -1 if entry.turn is None else entry.turn


def _drawers(palace: Palace, entries: Mapping[str, LedgerEntry]) -> dict[str, _Line]:
    """By item."""
    wanted = _ids(entries, DRAWER_ITEM)
    if not wanted:
        return {}
    lines: dict[str, _Line] = {}
    for drawer in Drawer.objects.within(palace).kept().with_place().filter(uuid__in=wanted):
        entry = entries[wanted[drawer.uuid]]
        if is_unchanged(entry, drawer_entry(drawer, None)):
            span = entry.span or (0, len(drawer.text))
            lines[entry.item] = drawer.uuid, Excerpt(drawer, span, entry.told)
    return lines


def _facts(palace: Palace, entries: Mapping[str, LedgerEntry]) -> dict[str, _Line]:
    """By item; facts whose evidence is gone are left out."""
    wanted = _ids(entries, FACT_ITEM)
    if not wanted:
        return {}
    keys = Fact.objects.within(palace).filter(uuid__in=wanted).values_list("pk", flat=True)
    lines: dict[str, _Line] = {}
    for known in recalled_facts(palace, list(keys), None):
        entry = entries[wanted[known.fact.uuid]]
        if is_unchanged(entry, fact_entry(known.fact, None, entry.told)):
            lines[entry.item] = known.drawer, replace(known, dates=entry.told)
    return lines


def _ids(entries: Mapping[str, LedgerEntry], kind: str) -> dict[UUID, str]:
    """Items of a kind by id; items are free text, so invalid ids are skipped."""
    ids: dict[UUID, str] = {}
    for item in entries:
        try:
            named = UUID(item.removeprefix(kind)) if item.startswith(kind) else None
        except ValueError:
            continue
        if named:
            ids[named] = item
    return ids
