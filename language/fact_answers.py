"""Fact answers: schema and validation of a model's facts against the messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import BaseModel, Field

from language.facts import TYPES, Candidate, FactType, Thing, Words, category_of
from language.storable import LABEL_LENGTH
from language.transcripts import Turn

MOST_FACTS = 60
TEXT_CHARS = 1000
PREDICATE_CHARS = 64
_KINDS = {kind: kind for kind in ("person", "place", "organisation", "project", "event", "item")}
_KINDS |= {"organization": "organisation", "company": "organisation", "location": "place"}
_PAST = ("used to", "formerly", "previously")
_STANCES = {"positive", "negative", "neutral", "mixed"}


class FactAnswer(BaseModel):
    turn: int = 0
    quote: str = ""
    type: str = "fact"
    subject: str
    subject_kind: str = ""
    predicate: str
    object: str = ""
    object_kind: str = ""
    text: str
    aspect: str = ""
    stance: str = ""
    negated: bool = False
    corrects: bool = False
    valid_from: str = ""
    valid_to: str = ""
    confidence: float = 0.8
    category: str = ""
    tags: list[str] = Field(default_factory=list)


class FactsAnswer(BaseModel):
    """What a conversation says that is worth remembering."""

    # Required: an answer in another form must not pass for one without facts.
    facts: list[FactAnswer]


def checked(answers: Sequence[FactAnswer], turns: Sequence[Turn]) -> list[Candidate]:
    """The valid facts of a model's answer, in the order of the messages."""
    found = _made_to_fit(answers[:MOST_FACTS], turns)
    return sorted(found, key=lambda candidate: candidate.words[0].turn)


def _made_to_fit(answers: Sequence[FactAnswer], turns: Sequence[Turn]) -> Iterator[Candidate]:
    """Convert complete answers to candidates; invalid values are normalised."""
    for answer in answers:
        text, subject = _line(answer.text, TEXT_CHARS), _line(answer.subject, LABEL_LENGTH)
        predicate = re.sub(r"\W+", "_", answer.predicate.strip().lower()).strip("_")
        if not (text and subject and predicate and turns):
            continue
        candidate = Candidate(
            type=_type(answer.type),
            subject=Thing(subject, _KINDS.get(answer.subject_kind.strip().lower(), "person")),
            predicate=predicate[:PREDICATE_CHARS],
            object=_line(answer.object, TEXT_CHARS),
            text=text,
            words=(_words(answer, turns),),
            thing=_thing(answer),
            aspect=_line(answer.aspect, LABEL_LENGTH).lower(),
            stance=answer.stance.lower() if answer.stance.lower() in _STANCES else "",
            negated=answer.negated,
            corrects=answer.corrects,
            valid_from=_day(answer.valid_from),
            valid_to=_day(answer.valid_to),
            confidence=min(max(answer.confidence, 0.0), 1.0),
            category=_line(answer.category, LABEL_LENGTH) or category_of(predicate),
            tags=tuple(_line(tag, LABEL_LENGTH) for tag in answer.tags if tag.strip())[:20],
        )
        yield _ended_when_said(candidate, turns)


def _ended_when_said(candidate: Candidate, turns: Sequence[Turn]) -> Candidate:
    """The candidate; what is stated as past ended by the day of its message, if not before."""
    said_at = turns[candidate.words[0].turn].said_at
    lasting = candidate.valid_to is None or candidate.valid_to > said_at
    past = tuple(f"{candidate.subject.name} {words} ".casefold() for words in _PAST)
    if lasting and candidate.type != "event" and candidate.text.casefold().startswith(past):
        return replace(candidate, valid_to=said_at)
    return candidate


def _type(answered: str) -> FactType:
    types: dict[str, FactType] = {name: name for name in TYPES}
    return types.get(answered.strip().lower(), "fact")


def _thing(answer: FactAnswer) -> Thing | None:
    kind = _KINDS.get(answer.object_kind.strip().lower())
    name = _line(answer.object, LABEL_LENGTH)
    return Thing(name, kind) if kind and name else None


def _words(answer: FactAnswer, turns: Sequence[Turn]) -> Words:
    """The span of the quotation: in the named turn, else in another, else the whole turn."""
    named = min(max(answer.turn, 0), len(turns) - 1)
    quote = answer.quote.strip()
    for at in (named, *range(len(turns))) if quote else ():
        start = turns[at].text.find(quote)
        if start >= 0:
            return Words(at, start, start + len(quote))
    return Words(named, 0, len(turns[named].text))


def _day(answered: str) -> datetime | None:
    """The date or time answered; None if invalid."""
    try:
        moment = datetime.fromisoformat(answered.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _line(text: str, limit: int) -> str:
    """The text on one line, truncated to `limit`."""
    return " ".join(text.split())[:limit].strip()
