"""What a judge knows, and what it decides about a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from language.candidate import Candidate, FactType, Thing


class Verdict(StrEnum):
    """The five judgements.

    Attributes:
        ADD: Nothing like it is known.
        UPDATE: It takes the place of a fact: the matter changed, was refined or was wrong.
        DELETE: It says that a fact is no longer true, and puts nothing in its place.
        NONE: It is known already; its words support the fact there is.
        COEXIST: Another facet of the same matter, true beside it.
    """

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"
    COEXIST = "COEXIST"


class Change(StrEnum):
    """How an UPDATE or a DELETE changes what was known.

    Attributes:
        SHIFT: It was true until now.
        REFINEMENT: It stays true, and more is known.
        CORRECTION: It was never true.
    """

    SHIFT = "shift"
    REFINEMENT = "refinement"
    CORRECTION = "correction"


@dataclass(frozen=True, slots=True, eq=False)
class KnownFact:
    """An active fact as the rules see it. Two are equal only if they are one object.

    Attributes:
        key: The caller's id of the fact.
        single: Its subject has one fact with this predicate and aspect at a time.
        said_order: Sorts facts by when they were said.
        said_in: The source and id of the conversation that it was learnt from; of a fact that was
            not learnt from messages, when it was recorded.

    The other attributes are those of `Candidate`.
    """

    key: int
    type: FactType
    subject: Thing
    predicate: str
    object: str
    text: str
    said_order: tuple[datetime, str, str, int, int]
    said_in: tuple[str, str] | datetime
    thing: Thing | None = None
    aspect: str = ""
    stance: str = ""
    category: str = ""
    confidence: float = 0.8
    tags: tuple[str, ...] = ()
    single: bool = False
    valid_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A fact that a candidate is judged beside; `similarity` is the cosine of the texts."""

    fact: KnownFact
    similarity: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    Attributes:
        fact: The one that is updated, deleted or repeated; None for ADD and COEXIST.
        text: The text of the fact after an UPDATE; empty: the candidate's text.
        why: The reason in a few words, shown in the history.
    """

    verdict: Verdict
    candidate: Candidate
    fact: KnownFact | None = None
    change: Change = Change.SHIFT
    text: str = ""
    why: str = ""
