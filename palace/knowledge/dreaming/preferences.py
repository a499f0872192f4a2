"""The second pass with a model: find preferences in the user's messages.

How often one has to show is decided here, on words that really stand in the messages; a model
only says how irritated the user was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from language.english.fact_prompt import quoted
from language.english.message_traits import is_sensitive
from llm.chat import Message
from palace.knowledge.dreaming.dream_input import GUARD, shown
from palace.knowledge.dreaming.proposals import After, Finding, Kind, Quote
from palace.models import ASKS_FIRST, Drawer

CATEGORY = "user-preferences/inferred"
TAG = "inferred"
METADATA = {"source": "inferred"}
TEXT_CHARS = 1000
# Shorter quotes could match anywhere.
LEAST_CHARS = 8

# Minimum number of messages that show it.
THRESHOLDS = {"very_irritated": 1, "mildly_frustrated": 2, "casual": 3}
_CASUAL = THRESHOLDS["casual"]


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
    return [
        {"role": "system", "content": directive + GUARD},
        {"role": "user", "content": f"<material>\n{quoted(material)}\n</material>"},
    ]


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
