"""Recall within a conversation: what its model has before it already is not given to it anew.

The ledger says what was put before the model, and at which message. Whoever calls a model that
remembers nothing between two calls has the block carry all of that along, as long as the message it
was put before is still read. Whoever keeps the earlier blocks is given only what is new.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from palace.models import Palace
from palace.recall.carried_context import Carried, of_drawer, of_fact, stands_for, still_before
from palace.recall.context_builder import Packed, pack
from palace.recall.context_format import Packable, PackableTurn
from palace.recall.facts import KnownFact
from palace.working.errors import WorkingMemoryAway
from palace.working.ledger import Entry, Ledger, within

logger = logging.getLogger(__name__)

LEDGER_AWAY = (
    "The ledger of this conversation does not answer (Redis is away), so what was shown earlier "
    "may be missing, or come again."
)


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A conversation at one of its messages.

    Attributes:
        id: What its ledger is named by.
        turn: The message that is to be answered, counted from 0.
        since: The first message that the model reads together with it.
        carries: Whether the block holds again what is before the model from earlier, each thing
            once. Else it holds only what is new: for callers that keep the earlier blocks.
    """

    id: str
    turn: int
    since: int = 0
    carries: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A ledger as it was read.

    Attributes:
        conversation: None outside of conversations.
        entries: All there are, by item.
        note: Why there are none, where Redis is away.
    """

    conversation: ConversationState | None = None
    entries: Mapping[str, Entry] = field(default_factory=dict)
    note: str = ""

    def held(self) -> dict[str, Entry]:
        """What the model has before it."""
        return (
            within(self.entries, self.conversation.since, self.conversation.turn)
            if self.conversation
            else {}
        )


@dataclass(frozen=True, slots=True)
class Injection:
    """What the ledger is to be told once the model was really sent the block.

    Attributes:
        new: What is in the block and was not before the model until now.
        gone: What is not before it any more: it left the window, was withdrawn or corrected, or
            there was no room for it.
    """

    conversation: ConversationState
    new: tuple[Entry, ...]
    gone: tuple[Entry, ...]

    def mark(self, palace: Palace) -> None:
        """
        Raises:
            WorkingMemoryAway: Redis is away; then these may come again, and no harm is done.
        """
        Ledger(palace, self.conversation.id).change(marked=self.new, gone=self.gone)


@dataclass(frozen=True, slots=True)
class Composed:
    """
    Attributes:
        packed: Its places are those of the hits and facts given, in or out of the block.
        held: Places of the hits that the model has before it already; likewise of facts.
        given: How many of the hits are in the block.
        carried: What else is in the block, the newest first.
    """

    packed: Packed
    held: frozenset[int] = frozenset()
    held_facts: frozenset[int] = frozenset()
    given: int = 0
    carried: tuple[Carried, ...] = ()
    injection: Injection | None = None


def read_seen(palace: Palace, conversation: ConversationState | None) -> Seen:
    """What the ledger holds, with one question to Redis; outside of conversations with none.

    Raises:
        BadInput: the conversation's id cannot be one.
    """
    if conversation is None:
        return Seen()
    try:
        return Seen(conversation, Ledger(palace, conversation.id).get())
    except WorkingMemoryAway as error:
        logger.warning("Recalled without a ledger: %s", error)
        return Seen(conversation, note=LEDGER_AWAY)


def compose(
    palace: Palace,
    seen: Seen,
    hits: Sequence[Packable],
    known: Sequence[KnownFact],
    budget_tokens: int | None,
    session: Sequence[PackableTurn],
    weights: Mapping[str, float],
    silent: Collection[int] = (),
) -> Composed:
    """The block of what was found and, where the conversation carries, of what stays from before.

    Each thing stands there once. What was found comes first, in its order, whether it is new or
    not; then what else stays, the newest first: where there is no room for all, the oldest go.

    Args:
        silent: Places of hits that tell nothing: the block does without them.
    """
    block = partial(pack, budget_tokens=budget_tokens, session=session, weights=weights)
    conversation = seen.conversation
    if conversation is None:
        packed = block(hits, facts=known, silent=silent)
        return Composed(packed, given=len(hits) - len(packed.left_out))
    found = _find(seen.held(), hits, known, conversation)
    if not conversation.carries:
        return _composed(seen, conversation, found, _only_new(block, found, silent), ())
    carried = still_before(palace, found.others)
    packed = block(hits, facts=known, carried=[each.line for each in carried], silent=silent)
    return _composed(
        seen, conversation, found, packed, tuple(carried[place] for place in packed.carried)
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found, as entries, and which of it is before the model already.

    Attributes:
        others: What else is before it.
    """

    hits: Sequence[Packable]
    known: Sequence[KnownFact]
    of_hits: Sequence[Entry]
    of_facts: Sequence[Entry]
    held: frozenset[int]
    held_facts: frozenset[int]
    others: Mapping[str, Entry]


def _find(
    before: Mapping[str, Entry],
    hits: Sequence[Packable],
    known: Sequence[KnownFact],
    conversation: ConversationState,
) -> _Found:
    of_hits = [
        replace(of_drawer(hit.drawer, conversation.turn), place=place)
        for place, hit in enumerate(hits)
    ]
    of_facts = [
        replace(of_fact(one.fact, conversation.turn, one.dates), place=place)
        for place, one in enumerate(known)
    ]
    come = {entry.item for entry in (*of_hits, *of_facts)}
    others = {item: entry for item, entry in before.items() if item not in come}
    held, held_facts = _held(before, of_hits), _held(before, of_facts)
    return _Found(hits, known, of_hits, of_facts, held, held_facts, others)


def _composed(
    seen: Seen,
    conversation: ConversationState,
    found: _Found,
    packed: Packed,
    stay: tuple[Carried, ...],
) -> Composed:
    """With what the ledger is to be told of it."""
    out = {*packed.left_out, *(() if conversation.carries else found.held)}
    into = _others(found.hits, out)
    spans = {place: found.hits[place].passage for place in packed.shortened}
    put_in = [replace(found.of_hits[place], span=spans.get(place)) for place in into]
    put_in += [found.of_facts[place] for place in packed.facts]
    kept = {entry.item for entry in put_in}
    kept |= {each.entry.item for each in stay} if conversation.carries else seen.held().keys()
    held = {found.of_hits[at].item for at in found.held}
    held |= {found.of_facts[at].item for at in found.held_facts}
    new = tuple(entry for entry in put_in if entry.item not in held)
    injection = Injection(conversation, new, tuple(_gone(seen.entries, conversation.turn, kept)))
    return Composed(packed, found.held, found.held_facts, len(into), stay, injection)


def _only_new(block: Callable[..., Packed], found: _Found, silent: Collection[int]) -> Packed:
    """The block without what is held; its places are those of all, and what is held has none."""
    of_hits = _others(found.hits, found.held)
    of_facts = _others(found.known, found.held_facts)
    new = [found.hits[place] for place in of_hits]
    packed = block(
        new,
        facts=[found.known[place] for place in of_facts],
        silent=[at for at, place in enumerate(of_hits) if place in silent],
    )
    return replace(
        packed,
        left_out=tuple(of_hits[place] for place in packed.left_out),
        shortened=tuple(of_hits[place] for place in packed.shortened),
        facts=tuple(of_facts[place] for place in packed.facts),
        facts_left_out=tuple(of_facts[place] for place in packed.facts_left_out),
    )


def _held(before: Mapping[str, Entry], entries: Sequence[Entry]) -> frozenset[int]:
    """Places of those that the model has before it in the same words."""
    return frozenset(
        place
        for place, entry in enumerate(entries)
        if entry.item in before and stands_for(before[entry.item], entry)
    )


def _others(all_of_them: Sequence[object], places: Collection[int]) -> list[int]:
    return [place for place in range(len(all_of_them)) if place not in places]


def _gone(entries: Mapping[str, Entry], turn: int, kept: Collection[str]) -> Iterator[Entry]:
    """What is not before the model any more; what a later message brought is not ours to judge."""
    for item, entry in entries.items():
        if item not in kept and entry.turn is not None and entry.turn <= turn:
            yield entry
