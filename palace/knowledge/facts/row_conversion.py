"""Convert between rows and the plain values of `language`: things, known facts and candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, cast

from language.facts import (
    Candidate,
    Change,
    FactType,
    Judgement,
    Known,
    KnownFact,
    Thing,
    Verdict,
    Words,
)
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from palace.knowledge.facts.ingestion_options import Scope
from palace.models import Drawer, Entity, Fact, Palace, Statement

_TIMES = ("valid_from", "valid_to")


def find_entity(palace: Palace, name: str, *, prefer: str = "") -> Entity | None:
    """The palace's entity with that name, or else with that alias.

    Args:
        prefer: A kind; of several entities the one of this kind, else the oldest.
    """
    name = storable_label(name)
    # All kinds, as the index begins with the kind.
    kinds = Entity.Kind.values
    named = list(
        Entity.objects.filter(palace=palace, kind__in=kinds, slug=slug_of(name)).order_by("pk")
    )
    named = named or list(Entity.objects.filter(palace=palace, aliases__contains=[name])[:1])
    same_kind = [entity for entity in named if entity.kind == prefer]
    return next(iter(same_kind or named), None)


def entity_for(palace: Palace, thing: Thing) -> Entity:
    """Find or create the entity of that name, of that kind if there are several.

    The caller locks the palace, so that concurrent writers create it once.
    """
    found = find_entity(palace, thing.name, prefer=thing.kind)
    if found is not None:
        return found
    name = storable_label(thing.name)
    return Entity.objects.create(
        palace=palace, kind=thing.kind, slug=slug_of(name), name=name[:LABEL_LENGTH]
    )


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
    """The known facts that a candidate is judged against.

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


def record(
    palace: Palace,
    drawers: Sequence[Drawer],
    judged: Sequence[tuple[Candidate, Judgement | None]],
    scope: Scope,
) -> list[Statement]:
    """Store candidates, each with the model's judgement; call it in the reading's transaction.

    Args:
        drawers: Those of the window, in the order to which the candidates' spans refer.
    """
    counts: dict[int, int] = {}
    rows = []
    for candidate, judgement in judged:
        drawer = drawers[candidate.words[0].turn]
        ordinal = counts.get(drawer.pk, 0)
        counts[drawer.pk] = ordinal + 1
        rows.append(
            Statement(
                palace=palace,
                drawer=drawer,
                ordinal=ordinal,
                by=scope.by,
                agent=scope.agent,
                run=scope.run,
                metadata=dict(scope.metadata),
                content=_written(candidate, drawers),
                judged=_decision(judgement) if judgement else None,
            )
        )
    # Messages read twice, after a process has died, are stored once.
    stored = Statement.objects.filter(palace=palace, drawer__in=list(counts)).select_related(
        "drawer"
    )
    there = {(row.drawer_id, row.ordinal): row for row in stored}
    Statement.objects.bulk_create(
        [row for row in rows if (row.drawer_id, row.ordinal) not in there]
    )
    return [there.get((row.drawer_id, row.ordinal), row) for row in rows]


def candidate_of(statement: Statement) -> Candidate:
    """The candidate; its spans refer to messages in the order of `messages_of`."""
    content = dict(statement.content)
    names = messages_of(statement)
    words = tuple(Words(names.index(name), *span) for name, *span in content.pop("words"))
    subject, thing = content.pop("subject"), content.pop("thing")
    content |= {name: _time(content[name]) for name in _TIMES}
    content |= {"words": words, "tags": tuple(content["tags"]), "subject": Thing(**subject)}
    return Candidate(**content, thing=Thing(**thing) if thing else None)


def messages_of(statement: Statement) -> list[str]:
    """Ids of the messages that support it, all of its conversation."""
    return list(dict.fromkeys(name for name, *_ in statement.content["words"]))


def decided(statement: Statement, candidate: Candidate, known: Sequence[Known]) -> Judgement | None:
    """The model's judgement, if the fact it named is known; None: the rules judge."""
    given: Mapping[str, Any] | None = statement.judged
    if given is None:
        return None
    named = given["fact"]
    fact = next((one.fact for one in known if one.fact.text == named), None)
    if named is not None and fact is None:
        return None
    verdict, change = Verdict(given["verdict"]), Change(given["change"])
    return Judgement(verdict, candidate, fact, change, given["text"], given["why"])


def _written(candidate: Candidate, drawers: Sequence[Drawer]) -> dict[str, Any]:
    words = [(drawers[span.turn].external_id, span.start, span.end) for span in candidate.words]
    times = {name: getattr(candidate, name) for name in _TIMES}
    iso = {name: moment.isoformat() if moment else None for name, moment in times.items()}
    return asdict(replace(candidate, words=())) | iso | {"words": words}


def _decision(judgement: Judgement) -> dict[str, Any]:
    return {
        "verdict": judgement.verdict,
        "change": judgement.change,
        "text": judgement.text,
        "why": judgement.why,
        "fact": judgement.fact.text if judgement.fact else None,
    }


def _time(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None
