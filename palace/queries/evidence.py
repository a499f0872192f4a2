"""A drawer's words, and the facts that rest on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from palace.knowledge.facts.evidence_support import resting_only_on
from palace.models import Drawer, Evidence, Fact, Palace

# So many stretches of words are looked at; more are in no message that people write.
SPANS_READ = 400


@dataclass(frozen=True, slots=True)
class Resting:
    """A memory that rests on a drawer.

    Attributes:
        fact: Its version that is held, else the latest of those that rest here.
        start: Where the first of its words begin.
        is_only: Whether it is held and rests on nothing else.
    """

    fact: Fact
    start: int
    is_only: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """
    Attributes:
        is_passage: Whether it belongs to the passage that the address names.
        is_first: Whether that passage begins here.
    """

    text: str
    is_passage: bool
    is_first: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a drawer's text.

    Attributes:
        url: Of the fact that rests on it, or of the list where there are several; else empty.
        name: The facts, for the link's title.
    """

    url: str
    name: str
    pieces: tuple[Piece, ...]


def evidence_in(drawer: Drawer) -> list[Evidence]:
    """The words of a drawer that facts rest on, in their order, each with its fact."""
    words = Evidence.objects.filter(palace=drawer.palace_id, drawer=drawer)
    return list(words.select_related("fact__subject").order_by("start", "pk")[:SPANS_READ])


def resting_on_it(palace: Palace, drawer: Drawer, words: Sequence[Evidence]) -> list[Resting]:
    """The memories that rest on these words of the drawer, each once."""
    only = set(_resting_only(palace, drawer)) if words else set()
    memories: dict[object, Resting] = {}
    for evidence in words:
        known = memories.get(evidence.fact.memory)
        if known is None or _is_later(evidence.fact, known.fact):
            start = known.start if known else evidence.start
            is_only = evidence.fact.pk in only
            memories[evidence.fact.memory] = Resting(evidence.fact, start, is_only)
    return list(memories.values())


def stretches(text: str, words: Sequence[Evidence], passage: tuple[int, int]) -> list[Stretch]:
    """The text cut where facts' words and the passage begin and end; joined, it is the text."""
    edges = {0, len(text), *passage, *(edge for one in words for edge in (one.start, one.end))}
    cuts = sorted(edge for edge in edges if 0 <= edge <= len(text))
    linked = [(_link(words, span), _piece(text, span, passage)) for span in pairwise(cuts)]
    return [
        Stretch(url, name, tuple(piece for _, piece in group))
        for (url, name), group in groupby(linked, key=lambda pair: pair[0])
    ]


def _link(words: Sequence[Evidence], span: tuple[int, int]) -> tuple[str, str]:
    """Where these characters lead, and what is said there; both empty where no fact rests."""
    facts = _unlike(one.fact for one in words if one.start <= span[0] and span[1] <= one.end)
    url = facts[0].get_absolute_url() if len(facts) == 1 else "#facts" if facts else ""
    return url, "; ".join(fact.text for fact in facts[:3])


def _piece(text: str, span: tuple[int, int], passage: tuple[int, int]) -> Piece:
    inside = passage[0] <= span[0] and span[1] <= passage[1]
    return Piece(text[slice(*span)], inside, inside and span[0] == passage[0])


def _unlike(facts: Iterable[Fact]) -> Sequence[Fact]:
    """One version of each memory."""
    by_memory = {fact.memory: fact for fact in facts}
    return list(by_memory.values())


def _resting_only(palace: Palace, drawer: Drawer) -> Iterable[int]:
    this = Drawer.objects.within(palace).filter(pk=drawer.pk)
    return resting_only_on(palace, this).values_list("pk", flat=True)


def _is_later(fact: Fact, other: Fact) -> bool:
    """Whether it is the one to be shown: held before dropped, then the latest."""
    return (fact.retired_at is None, fact.recorded_at) > (
        other.retired_at is None,
        other.recorded_at,
    )
