"""Between rows and rules: rows become plain facts, and a judgement of one becomes a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from language.facts import FactType, Judgement, Known, KnownFact, Thing
from palace.models import Entity, Fact


@dataclass(frozen=True, slots=True)
class Decision:
    """A judgement, with the row of the fact that it names."""

    judgement: Judgement
    row: Fact | None = None


def known_fact_of(row: Fact) -> KnownFact:
    """A row as a plain fact; fetch it with its entities, statement and drawer."""
    statement, entity = row.opened_by, row.object_entity
    said_in = (statement.drawer.source, statement.drawer.conversation) if statement else None
    return KnownFact(
        key=row.pk,
        type=cast(FactType, row.type),
        subject=_thing(row.subject),
        predicate=row.predicate,
        object=row.object,
        text=row.text,
        said_order=row.said_order,
        said_in=said_in or row.recorded_at,
        thing=_thing(entity) if entity else None,
        aspect=row.aspect,
        stance=row.stance,
        category=row.category,
        confidence=row.confidence,
        tags=tuple(row.tags),
        single=row.single,
        valid_from=row.valid_from,
    )


def _thing(entity: Entity) -> Thing:
    return Thing(entity.name, entity.kind)


class KnownRows:
    """The rows that a candidate is judged beside.

    Attributes:
        known: The rows as plain facts, in the order given.
    """

    def __init__(
        self,
        rows: Iterable[tuple[Fact, float]],
        known_fact: Callable[[Fact], KnownFact] = known_fact_of,
    ) -> None:
        """
        Args:
            rows: Each with its similarity to the candidate.
            known_fact: Gives the plain fact of a row.
        """
        self._rows: dict[int, Fact] = {}
        self.known: list[Known] = []
        for row, similarity in rows:
            self._rows[row.pk] = row
            self.known.append(Known(known_fact(row), similarity))

    def decision(self, judgement: Judgement) -> Decision:
        """Add the row that the judgement is about."""
        return Decision(judgement, self._rows[judgement.fact.key] if judgement.fact else None)
