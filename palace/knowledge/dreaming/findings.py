"""What a dream finds: one change of what is held, before it is proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from django.utils.crypto import salted_hmac

from language.english.judging.wording import words_of
from palace.models import Fact, Proposal

MadeBy = Literal["model", "rules"]
Kind = Proposal.Kind

# Kinds that change no fact there is, but add one.
ADDING = (Kind.ANTI_PATTERN, Kind.PREFERENCE)


@dataclass(frozen=True, slots=True)
class Quote:
    """Characters `start` to `end` (exclusive) of a drawer, which is given by its key."""

    drawer: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class After:
    """What is to be held instead, or as well."""

    text: str
    category: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Attributes:
        sources: Facts that are held no longer once it is accepted.
        beside: Facts that stay, and are the reason.
        quotes: The words it rests on, where it is about no fact.
        after: None where nothing takes the sources' place.
        why: A few words for whoever decides.
    """

    kind: Kind
    made_by: MadeBy
    sources: tuple[Fact, ...] = ()
    beside: tuple[Fact, ...] = ()
    quotes: tuple[Quote, ...] = ()
    after: After | None = None
    why: str = ""

    def fingerprint(self) -> UUID:
        """The same each time the same change of the same statements is found.

        However it is worded: a model words it otherwise each night. It gives no word away.
        """
        if self.kind in ADDING and self.after is not None:
            parts = [self.after.category, *sorted(words_of(self.after.text))]
        else:
            parts = sorted(f"{fact.memory} {fact.text}" for fact in (*self.sources, *self.beside))
        told = "\0".join(f"{len(part)} {part}" for part in (self.kind.value, *parts))
        return UUID(salted_hmac("proposals", told, algorithm="sha256").hexdigest()[:32])

    def payload(self) -> dict[str, Any]:
        return {
            "before": [_described(fact) for fact in (*self.sources, *self.beside)],
            "after": _as_json(self.after) if self.after else None,
            "why": self.why,
            "made_by": self.made_by,
        }


def after_of(payload: Mapping[str, Any]) -> After | None:
    """What `Finding.payload` wrote of it."""
    after = payload["after"]
    if after is None:
        return None
    return After(after["text"], after["category"], tuple(after["tags"]), after["metadata"])


def same_scope(facts: Sequence[Fact]) -> bool:
    """Whether they are remembered for the same agent and run."""
    return len({(fact.agent, fact.run) for fact in facts}) <= 1


def _as_json(after: After) -> dict[str, Any]:
    return {
        "text": after.text,
        "category": after.category,
        "tags": list(after.tags),
        "metadata": dict(after.metadata),
    }


def _described(fact: Fact) -> dict[str, Any]:
    return {
        "memory": str(fact.memory),
        "text": fact.text,
        "category": fact.category,
        "tags": fact.tags,
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
    }
