"""Deduplication: within a conversation, recall does not repeat what the model can already see.

The ledger records what was injected, and at which message. A caller whose model keeps no state
between calls gets a block that carries earlier lines along while their message is in the context
window; the lines are rebuilt from ledger entries. A caller that keeps earlier blocks gets only new
lines.

Hits are not compared with each other, nor are facts here: which say the same is found by
`language.english.judging.comparison`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from language.errors import WorkingMemoryAway
from language.storable import digest
from palace.models import Drawer, Fact, Palace, Pointer
from palace.recall.context_builder import Packed, pack
from palace.recall.context_lines import Packable, PackableTurn
from palace.recall.facts import RecalledFact, recalled_facts
from palace.working.ledger import Ledger, LedgerEntry, within

logger = logging.getLogger(__name__)

# Prefixes of ledger items, by kind.
DRAWER_ITEM, FACT_ITEM = "drawer:", "fact:"
LEDGER_AWAY = (
    "The ledger of this conversation is unavailable (Redis does not respond), so what was shown "
    "earlier may be missing or repeated."
)


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


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A conversation at one of its messages.

    Attributes:
        id: Names the ledger.
        turn: The message to answer, counted from 0.
        since: The first message in the context window.
        carries: Whether the block repeats earlier lines that are still visible, each once. If
            False it contains only new lines, for callers that keep earlier blocks.
    """

    id: str
    turn: int
    since: int = 0
    carries: bool = False


@dataclass(frozen=True, slots=True)
class LedgerSnapshot:
    """The ledger's entries at one moment.

    Attributes:
        conversation: None outside of conversations.
        entries: All entries, by item.
        note: Why there are none, if Redis is unavailable.
    """

    conversation: ConversationState | None = None
    entries: Mapping[str, LedgerEntry] = field(default_factory=dict)
    note: str = ""

    def visible(self) -> dict[str, LedgerEntry]:
        """The entries that are in the model's context window."""
        return (
            within(self.entries, self.conversation.since, self.conversation.turn)
            if self.conversation
            else {}
        )


@dataclass(frozen=True, slots=True)
class Injection:
    """The ledger update to apply once the block was sent to the model.

    Attributes:
        new: Items of the block that the model could not see before.
        gone: Items it can no longer see: they left the window, were removed or corrected, or did
            not fit.
    """

    conversation: ConversationState
    new: tuple[LedgerEntry, ...]
    gone: tuple[LedgerEntry, ...]

    def mark(self, palace: Palace) -> None:
        """
        Raises:
            WorkingMemoryAway: Redis is unavailable; the items may be repeated, without harm.
        """
        Ledger(palace, self.conversation.id).change(marked=self.new, gone=self.gone)


@dataclass(frozen=True, slots=True)
class Composed:
    """
    Attributes:
        packed: Its indices refer to the hits and facts passed in.
        duplicate_hits: Indices of the hits that the model can already see.
        duplicate_facts: Indices of the facts that the model can already see.
        hits_in_block: Number of hits in the block.
        carried: Lines carried from earlier blocks, newest first.
    """

    packed: Packed
    duplicate_hits: frozenset[int] = frozenset()
    duplicate_facts: frozenset[int] = frozenset()
    hits_in_block: int = 0
    carried: tuple[Carried, ...] = ()
    injection: Injection | None = None


def read_ledger(palace: Palace, conversation: ConversationState | None) -> LedgerSnapshot:
    """Read the ledger with one Redis request; none outside of conversations.

    Raises:
        BadInput: the conversation's id is invalid.
    """
    if conversation is None:
        return LedgerSnapshot()
    try:
        return LedgerSnapshot(conversation, Ledger(palace, conversation.id).get())
    except WorkingMemoryAway as error:
        logger.warning("Recalled without a ledger: %s", error)
        return LedgerSnapshot(conversation, note=LEDGER_AWAY)


def compose(
    palace: Palace,
    ledger: LedgerSnapshot,
    hits: Sequence[Packable],
    known: Sequence[RecalledFact],
    budget_tokens: int | None,
    session: Sequence[PackableTurn],
    weights: Mapping[str, float],
    uninformative: Collection[int] = (),
) -> Composed:
    """Build the block of hits and facts and, if the conversation carries, of earlier lines.

    Each item appears once. Hits and facts come first, in their order; then the carried lines,
    newest first: if not all fit, the oldest are dropped.

    Args:
        uninformative: Indices of uninformative hits, which get no line.
    """
    block = partial(pack, budget_tokens=budget_tokens, session=session, weights=weights)
    conversation = ledger.conversation
    if conversation is None:
        packed = block(hits, facts=known, uninformative=uninformative)
        return Composed(packed, hits_in_block=len(hits) - len(packed.left_out))
    matches = _match(ledger.visible(), hits, known, conversation)
    if not conversation.carries:
        return _composed(
            ledger, conversation, matches, _only_new(block, matches, uninformative), ()
        )
    carried = load_carried(palace, matches.others_shown)
    packed = block(
        hits, facts=known, carried=[each.line for each in carried], uninformative=uninformative
    )
    return _composed(
        ledger, conversation, matches, packed, tuple(carried[place] for place in packed.carried)
    )


@dataclass(frozen=True, slots=True)
class _Matches:
    """Hits and facts as ledger entries, and which of them the model can already see.

    Attributes:
        others_shown: The other entries that the model can see.
    """

    hits: Sequence[Packable]
    known: Sequence[RecalledFact]
    hit_entries: Sequence[LedgerEntry]
    fact_entries: Sequence[LedgerEntry]
    duplicate_hits: frozenset[int]
    duplicate_facts: frozenset[int]
    others_shown: Mapping[str, LedgerEntry]


def _match(
    visible: Mapping[str, LedgerEntry],
    hits: Sequence[Packable],
    known: Sequence[RecalledFact],
    conversation: ConversationState,
) -> _Matches:
    hit_entries = [
        replace(drawer_entry(hit.drawer, conversation.turn), place=place, told=hit.note)
        for place, hit in enumerate(hits)
    ]
    fact_entries = [
        replace(fact_entry(one.fact, conversation.turn, one.dates), place=place)
        for place, one in enumerate(known)
    ]
    matched_items = {entry.item for entry in (*hit_entries, *fact_entries)}
    others_shown = {item: entry for item, entry in visible.items() if item not in matched_items}
    return _Matches(
        hits,
        known,
        hit_entries,
        fact_entries,
        _duplicates(visible, hit_entries),
        _duplicates(visible, fact_entries),
        others_shown,
    )


def _composed(
    ledger: LedgerSnapshot,
    conversation: ConversationState,
    matches: _Matches,
    packed: Packed,
    kept_lines: tuple[Carried, ...],
) -> Composed:
    """Attach the ledger update."""
    out = {*packed.left_out, *(() if conversation.carries else matches.duplicate_hits)}
    into = _indices_without(matches.hits, out)
    spans = {place: matches.hits[place].passage for place in packed.shortened}
    put_in = [replace(matches.hit_entries[place], span=spans.get(place)) for place in into]
    put_in += [matches.fact_entries[place] for place in packed.facts]
    kept = {entry.item for entry in put_in}
    kept |= (
        {each.entry.item for each in kept_lines}
        if conversation.carries
        else ledger.visible().keys()
    )
    duplicates = {matches.hit_entries[at].item for at in matches.duplicate_hits}
    duplicates |= {matches.fact_entries[at].item for at in matches.duplicate_facts}
    new = tuple(entry for entry in put_in if entry.item not in duplicates)
    injection = Injection(
        conversation, new, tuple(_removed(ledger.entries, conversation.turn, kept))
    )
    return Composed(
        packed, matches.duplicate_hits, matches.duplicate_facts, len(into), kept_lines, injection
    )


def _only_new(
    block: Callable[..., Packed], matches: _Matches, uninformative: Collection[int]
) -> Packed:
    """The block without duplicates; its indices refer to all hits and facts."""
    new_hits = _indices_without(matches.hits, matches.duplicate_hits)
    new_facts = _indices_without(matches.known, matches.duplicate_facts)
    new = [matches.hits[place] for place in new_hits]
    packed = block(
        new,
        facts=[matches.known[place] for place in new_facts],
        uninformative=[at for at, place in enumerate(new_hits) if place in uninformative],
    )
    return replace(
        packed,
        left_out=tuple(new_hits[place] for place in packed.left_out),
        shortened=tuple(new_hits[place] for place in packed.shortened),
        facts=tuple(new_facts[place] for place in packed.facts),
        facts_left_out=tuple(new_facts[place] for place in packed.facts_left_out),
    )


def _duplicates(
    visible: Mapping[str, LedgerEntry], entries: Sequence[LedgerEntry]
) -> frozenset[int]:
    """Indices of the entries that the model can already see with the same text."""
    return frozenset(
        place
        for place, entry in enumerate(entries)
        if entry.item in visible and is_unchanged(visible[entry.item], entry)
    )


def _indices_without(all_of_them: Sequence[object], places: Collection[int]) -> list[int]:
    return [place for place in range(len(all_of_them)) if place not in places]


def _removed(
    entries: Mapping[str, LedgerEntry], turn: int, kept: Collection[str]
) -> Iterator[LedgerEntry]:
    """Entries that the model can no longer see; entries of later messages are left alone."""
    for item, entry in entries.items():
        if item not in kept and entry.turn is not None and entry.turn <= turn:
            yield entry
