"""Grounding of generic frames: which known fact "the boat is history" is about, if any.

A frame acts only where its words are those of one fact's value, and of a kind that it can end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from language.english.facts.held_changes import HeldChange, held_changes_in
from language.english.facts.phrasing import third
from language.english.judging.wording import overlap, words_of
from language.facts import Candidate, KnownFact

# Words that occur in statements on any topic.
COMMON = words_of(
    "I they them it that this no not sorry actually meant wait only one two three per day week year"
    " month hour time have has had got get go went up down back about around every put make"
)
# "A boat called Petrel" is "the boat".
_SORT = re.compile(r"\b([\w-]+) (?:called|named)\b")
# Their object begins with a verb, which alone does not say which of them is meant.
_DONE = frozenset({"does", "plans", "wants", "did"})
_TIMES = words_of(
    "monday tuesday wednesday thursday friday saturday sunday weekend morning evening night day"
    " week month year spring summer autumn winter time hour minute job work home house thing"
)


@dataclass(frozen=True, slots=True)
class Grounded:
    """
    Attributes:
        fact: What ends.
        new: What takes the place of `span` in its text; empty, like it, if nothing does.
        wrong: It was never so.
    """

    fact: KnownFact
    new: str = ""
    span: str = ""
    wrong: bool = False


def value_words(fact: KnownFact) -> frozenset[str]:
    """The words of its value, and of what sort of thing it names: "dog" of "a dog named Rex"."""
    value = words_of(f"{fact.object} {fact.aspect}")
    named = fact.object[:1].isupper()
    return value | words_of(" ".join(_SORT.findall(fact.text))) if named else value


def is_framed(candidate: Candidate) -> bool:
    """Whether a generic frame made the candidate."""
    framed = held_changes_in(candidate.text)
    return any(third(change.old) == candidate.object for change in framed)


def grounded_in(candidate: Candidate, facts: Sequence[KnownFact]) -> Grounded | None:
    """The fact that a frame of the candidate's sentence ends, or whose value it replaces."""
    for change in held_changes_in(candidate.text):
        held = [fact for fact in facts if _is_meant(change, fact)]
        if not held or (len(held) > 1 and not overlap(change.old, held[0].object)):
            continue  # "The cat", of two cats.
        fact = max(held, key=lambda one: overlap(change.old, one.object))
        opens = candidate.text.startswith(change.new)  # Its capital is the sentence's.
        span = _replaced_by(change, fact, opens=opens)
        lower = opens and span[:1].islower()
        new = change.new[:1].lower() + change.new[1:] if lower else change.new
        return Grounded(fact, new if span else "", span, change.wrong)
    return None


def _is_meant(change: HeldChange, fact: KnownFact) -> bool:
    """Whether the frame can end such a fact and names it, and the fact is not the new one."""
    fits = fact.predicate in change.kinds and _names(change, fact)
    return fits and not (change.new and words_of(change.new) <= words_of(fact.object))


def _names(change: HeldChange, fact: KnownFact) -> bool:
    """Whether all words in the frame are the fact's value's, or say what sort of thing it names."""
    named = words_of(change.old) - COMMON
    value = value_words(fact)
    verb, _, rest = fact.object.partition(" ")
    if fact.predicate in _DONE and rest and not change.old.endswith("ing"):
        value -= words_of(verb)
    return bool(named) and named <= value - _TIMES


def _replaced_by(change: HeldChange, fact: KnownFact, *, opens: bool) -> str:
    """The part of the fact's text whose place the new value takes; empty if none is of its kind.

    Args:
        opens: The new value begins the sentence.
    """
    for span in (change.old, fact.object) if change.new else ():
        alike = opens or span[:1].isupper() == change.new[:1].isupper()
        found = re.search(rf"(?<!\w){re.escape(span)}(?!\w)", fact.text, re.IGNORECASE)
        if alike and found is not None:
            return found[0]
    return ""
