"""The two passes with a model: what it is asked, and how its answers become findings.

The first consolidates all facts in one call. The second finds preferences in the user's messages:
how often one has to show is decided here, on words that really stand in the messages; a model only
says how irritated the user was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from language.english.fact_prompt import quoted
from language.english.message_traits import is_sensitive
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from llm.chat import Message
from palace.knowledge.dreaming.dream_input import GUARD, Feedback, facts_shown, shown
from palace.knowledge.dreaming.proposals import After, Finding, Kind, Quote, same_scope
from palace.models import ASKS_FIRST, Drawer, Fact

ANTI_PATTERNS = "anti-patterns"
TEXT_CHARS = 1000
WHY_CHARS = 160
MOST_TAGS = 20
CATEGORY = "user-preferences/inferred"
TAG = "inferred"
METADATA = {"source": "inferred"}
# Shorter quotes could match anywhere.
LEAST_CHARS = 8

# Minimum number of messages that show it.
THRESHOLDS = {"very_irritated": 1, "mildly_frustrated": 2, "casual": 3}
_CASUAL = THRESHOLDS["casual"]


class MergedEntry(BaseModel):
    source_ids: list[int] = Field(default_factory=list)
    text: str
    category: str = ""
    tags: list[str] = Field(default_factory=list)
    why: str = ""


class RefinedEntry(BaseModel):
    id: int
    category: str = ""
    tags: list[str] = Field(default_factory=list)
    why: str = ""


class OutdatedEntry(BaseModel):
    id: int
    by: int | None = None
    why: str = ""


class AntiPatternEntry(BaseModel):
    domain: str
    dont: str
    for_reason: str
    instead: str
    feedback: list[int] = Field(default_factory=list)


class ConsolidationAnswer(BaseModel):
    """The model's changes of memories, by number."""

    merged: list[MergedEntry] = Field(default_factory=list)
    refined: list[RefinedEntry] = Field(default_factory=list)
    outdated: list[OutdatedEntry] = Field(default_factory=list)
    to_delete: list[int] = Field(default_factory=list)
    anti_patterns: list[AntiPatternEntry] = Field(default_factory=list)


def consolidation_messages(
    directive: str, facts: Sequence[Fact], feedback: Sequence[Feedback]
) -> list[Message]:
    material = {
        "memories": facts_shown(facts),
        "feedback": [
            {"id": number, "kind": one.kind, "text": one.text}
            for number, one in enumerate(feedback, start=1)
        ],
    }
    return _messages(directive, material)


@dataclass(slots=True)
class Consolidation:
    """Convert an answer to findings. The first change of a fact counts.

    Every source of a merge goes, whether or not the answer remembers to delete it, together with
    all that it names for deletion.

    Attributes:
        notes: What of the answer was left out, in sentences.
    """

    facts: Sequence[Fact]
    feedback: Sequence[Feedback]
    notes: list[str] = field(default_factory=list)
    _unknown: set[int] = field(default_factory=set)
    _gone: set[int] = field(default_factory=set)
    _left_out: int = 0

    def findings(self, answer: ConsolidationAnswer) -> list[Finding]:
        found = [
            *self._merged(answer.merged),
            *self._outdated(answer.outdated),
            *self._deleted(answer.to_delete),
            *self._refined(answer.refined),
            *self._anti_patterns(answer.anti_patterns),
        ]
        if self._unknown:
            numbers = ", ".join(map(str, sorted(self._unknown)[:10]))
            self.notes.append(f"The model named memories that were not shown to it: {numbers}.")
        if self._left_out:
            self.notes.append(
                f"Left out of the model's answer, as it made no sense: {self._left_out}."
            )
        return found

    def _merged(self, entries: Iterable[MergedEntry]) -> Iterator[Finding]:
        for entry in entries:
            known = self._known(entry.source_ids)
            sources = {key: fact for key, fact in known.items() if key not in self._gone}
            text = _line(entry.text)
            # Skip sources that another merge uses: parts would be duplicated or lost.
            if not text or not sources or len(sources) < len(known):
                self._left_out += 1
                continue
            if not same_scope(list(sources.values())):
                self._left_out += 1
                continue
            self._gone |= sources.keys()
            yield self._rewritten(list(sources.values()), text, entry)

    def _rewritten(self, sources: list[Fact], text: str, entry: MergedEntry) -> Finding:
        category = _label(entry.category) or sources[0].category
        kept = dict.fromkeys(tag for fact in sources for tag in fact.tags)
        tags = _tags(entry.tags) or tuple(kept)
        return Finding(
            kind=Kind.MERGE if len(sources) > 1 else Kind.REFINE,
            made_by="model",
            sources=tuple(sources),
            after=After(text, category, tags),
            why=_why(entry.why),
        )

    def _outdated(self, entries: Iterable[OutdatedEntry]) -> Iterator[Finding]:
        for entry in entries:
            fact = self._one(entry.id)
            newer = self._known([entry.by]).get(entry.by) if entry.by is not None else None
            if fact is None or (newer is not None and newer.pk == fact.pk):
                continue
            self._gone.add(entry.id)
            kind = Kind.CONTRADICTION if newer else Kind.OUTDATED
            beside = (newer,) if newer else ()
            yield Finding(kind, "model", (fact,), beside, why=_why(entry.why))

    def _deleted(self, numbers: Iterable[int]) -> Iterator[Finding]:
        for number in dict.fromkeys(numbers):
            fact = self._one(number)
            if fact is not None:
                self._gone.add(number)
                yield Finding(Kind.DROP, "model", (fact,))

    def _refined(self, entries: Iterable[RefinedEntry]) -> Iterator[Finding]:
        for entry in entries:
            fact = self._one(entry.id)
            if fact is None:
                continue
            category, tags = _label(entry.category) or fact.category, _tags(entry.tags)
            if (category, list(tags or fact.tags)) == (fact.category, fact.tags):
                continue
            self._gone.add(entry.id)
            after = After(fact.text, category, tags or tuple(fact.tags))
            yield Finding(Kind.REFINE, "model", (fact,), after=after, why=_why(entry.why))

    def _anti_patterns(self, entries: Iterable[AntiPatternEntry]) -> Iterator[Finding]:
        for entry in entries:
            dont, reason = _line(entry.dont), _line(entry.for_reason)
            instead = _line(entry.instead)
            numbers = dict.fromkeys(n for n in entry.feedback if 1 <= n <= len(self.feedback))
            domain = slug_of(_label(entry.domain))
            if not (dont and reason and instead and numbers and entry.domain.strip()):
                self._left_out += 1
                continue
            rests_on = [self.feedback[number - 1] for number in numbers]
            yield anti_pattern(domain, dont, reason, instead, rests_on)

    def _one(self, number: int) -> Fact | None:
        """A fact without a change so far."""
        fact = self._known([number]).get(number)
        return None if number in self._gone else fact

    def _known(self, numbers: Iterable[int]) -> Mapping[int, Fact]:
        known = {}
        for number in dict.fromkeys(numbers):
            if 1 <= number <= len(self.facts):
                known[number] = self.facts[number - 1]
            else:
                self._unknown.add(number)
        return known


def anti_pattern(
    domain: str, dont: str, reason: str, instead: str, rests_on: Sequence[Feedback]
) -> Finding:
    """An anti-pattern in the form in which it is stored and compared."""
    dont = dont.removeprefix("Don't ").removeprefix("Don’t ").rstrip(".")
    reason = reason.removeprefix("for ").rstrip(".")
    text = f"Don't {dont} for {reason} — instead {instead.removeprefix('instead ').rstrip('.')}"
    quotes: dict[tuple[int, int], Quote] = {}
    for one in rests_on:
        quotes |= {(quote.drawer, quote.start): quote for quote in one.quotes}
    category = f"{ANTI_PATTERNS}/{domain}"[:LABEL_LENGTH]
    return Finding(
        kind=Kind.ANTI_PATTERN,
        made_by="model",
        quotes=tuple(quotes.values()),
        after=After(text[:TEXT_CHARS], category, ("anti-pattern",)),
        why="from corrections of the last days",
    )


def _messages(directive: str, material: Any) -> list[Message]:
    return [
        {"role": "system", "content": directive + GUARD},
        {"role": "user", "content": f"<material>\n{quoted(material)}\n</material>"},
    ]


def _line(text: str) -> str:
    return " ".join(text.split())[:TEXT_CHARS].strip()


def _why(text: str) -> str:
    return " ".join(text.split())[:WHY_CHARS]


def _label(text: str) -> str:
    return storable_label(" ".join(text.split()).strip("/"))[:LABEL_LENGTH]


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_label(tag) for tag in tags if tag.strip()))[:MOST_TAGS]


class OccurrenceEntry(BaseModel):
    message: int
    quote: str = ""


class PreferenceEntry(BaseModel):
    text: str
    sentiment: str = ""
    occurrences: list[OccurrenceEntry] = Field(default_factory=list)
    sensitive: bool = False
    why: str = ""


class PreferencesAnswer(BaseModel):
    """Lasting preferences found in the messages."""

    preferences: list[PreferenceEntry] = Field(default_factory=list)


def preference_messages(directive: str, log: Sequence[Drawer]) -> list[Message]:
    material = [
        {
            "message": number,
            "said_at": drawer.said_at.isoformat(timespec="minutes"),
            "text": shown(drawer.text),
        }
        for number, drawer in enumerate(log, start=1)
    ]
    return _messages(directive, material)


@dataclass(slots=True)
class Preferences:
    """Convert an answer to findings, checked against the messages.

    Attributes:
        notes: What was left out of the answer, in sentences.
    """

    log: Sequence[Drawer]
    notes: list[str] = field(default_factory=list)

    def findings(self, answer: PreferencesAnswer) -> list[Finding]:
        found = list(self._borne_out(answer.preferences))
        held_back = len(answer.preferences) - len(found)
        if held_back:
            self.notes.append(
                f"Preferences that did not show often enough, or in no words of yours: {held_back}."
            )
        return found

    def _borne_out(self, entries: Sequence[PreferenceEntry]) -> Iterator[Finding]:
        for entry in entries:
            text = " ".join(entry.text.split())[:TEXT_CHARS]
            sentiment = entry.sentiment.strip().lower().replace(" ", "_").replace("-", "_")
            quotes = self._quotes(entry.occurrences)
            # Unknown values count as casual.
            if not text or len(quotes) < THRESHOLDS.get(sentiment, _CASUAL):
                continue
            metadata = dict(METADATA)
            if entry.sensitive or self._is_sensitive(text, quotes):
                metadata[ASKS_FIRST] = "true"
            yield Finding(
                kind=Kind.PREFERENCE,
                made_by="model",
                quotes=tuple(quotes),
                after=After(text, CATEGORY, (TAG,), metadata),
                why=f"it showed in {len(quotes)} of your messages"
                if len(quotes) > 1
                else "you said so with emphasis",
            )

    def _quotes(self, occurrences: Sequence[OccurrenceEntry]) -> list[Quote]:
        """One quote per message, only if the message contains it."""
        found: dict[int, Quote] = {}
        for one in occurrences:
            if not 1 <= one.message <= len(self.log):
                continue
            drawer = self.log[one.message - 1]
            span = _find(one.quote, drawer.text)
            if span is not None:
                found.setdefault(drawer.pk, Quote(drawer.pk, *span))
        return list(found.values())

    def _is_sensitive(self, text: str, quotes: Sequence[Quote]) -> bool:
        by_key = {drawer.pk: drawer.text for drawer in self.log}
        words = [by_key[quote.drawer][quote.start : quote.end] for quote in quotes]
        return any(map(is_sensitive, (text, *words)))


def _find(quote: str, text: str) -> tuple[int, int] | None:
    """Find a quote in a text, ignoring differences in white space."""
    parts = quote.split()
    if not parts or (len(" ".join(parts)) < LEAST_CHARS and parts != text.split()):
        return None
    match = re.search(r"\s+".join(re.escape(part) for part in parts), text, re.IGNORECASE)
    return match.span() if match else None
