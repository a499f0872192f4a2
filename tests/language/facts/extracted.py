"""What the rules find in something somebody says, put shortly."""

from __future__ import annotations

from datetime import UTC, datetime

from language.english.facts.reading import read_facts
from language.transcripts import Turn

SAID_AT = datetime(2025, 6, 10, 12, tzinfo=UTC)  # A Tuesday.


def turns(*texts, speaker="", role="user", said_at=SAID_AT):
    return [Turn(str(at), role, text, said_at, speaker) for at, text in enumerate(texts, start=1)]


def facts(*texts, **of):
    return read_facts(turns(*texts, **of))


def texts(*said, **of):
    return [one.text for one in facts(*said, **of)]


def triples(*said, **of):
    return [(one.subject.name, one.predicate, one.object) for one in facts(*said, **of)]
