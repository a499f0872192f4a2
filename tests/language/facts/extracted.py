"""What the rules find in messages, and the facts that it makes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from language.english.facts.fact_reading import read_facts
from language.facts import Known, KnownFact, is_single
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


def known(*said, similarity=0.3):
    """The facts that messages make, each message a day after the one before."""
    return [
        Known(known_fact(one, 10 * day + number, SAID_AT + timedelta(days=day)), similarity)
        for day, text in enumerate(said)
        for number, one in enumerate(facts(text))
    ]


def known_fact(candidate, key=0, said_at=SAID_AT):
    return KnownFact(
        key=key,
        type=candidate.type,
        subject=candidate.subject,
        predicate=candidate.predicate,
        object=candidate.object,
        text=candidate.text,
        said_order=(said_at, "", "", 0, 0),
        said_in=("plain", said_at.isoformat()),
        thing=candidate.thing,
        aspect=candidate.aspect,
        stance=candidate.stance,
        category=candidate.category,
        tags=candidate.tags,
        confidence=candidate.confidence,
        single=is_single(candidate.predicate),
        valid_from=candidate.valid_from or SAID_AT,
    )
