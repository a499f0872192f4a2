"""What becomes of a candidate beside the facts there are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from language.candidate import Candidate
from palace.models import Fact


class Verdict(StrEnum):
    """The five judgements.

    Attributes:
        ADD: Nothing like it is known.
        UPDATE: It takes the place of a fact: the matter changed, was refined or was wrong.
        DELETE: It says that a fact no longer holds, and puts nothing in its place.
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


@dataclass(frozen=True, slots=True)
class Known:
    """An active fact that a candidate is judged beside; `similarity` is the cosine of the texts."""

    fact: Fact
    similarity: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    Attributes:
        fact: The one that is updated, deleted or repeated; None for ADD and COEXIST.
        text: What an UPDATE says from now on; empty: what the candidate says.
        why: For whoever reads the history, in a few words.
    """

    verdict: Verdict
    candidate: Candidate
    fact: Fact | None = None
    change: Change = Change.SHIFT
    text: str = ""
    why: str = ""
