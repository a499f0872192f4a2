"""Entity merge: moves facts and mentions, and resolves duplicates and conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from palace.knowledge.facts.fact_writer import TOOK_ITS_PLACE, note, retire, take_over_evidence
from palace.knowledge.facts.scope import Scope
from palace.models import Entity, Evidence, Fact, FactEvent, Mention, Palace

BY_PERSON = Scope("person")
SAID_OF_BOTH = "the same was held of an entity merged with it"

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Joined:
    """A duplicate fact, the fact it was joined with, and the evidence moved, all by key."""

    fact: int
    into: int
    words: Sequence[int]


@dataclass(frozen=True, slots=True)
class Superseded:
    """A superseded fact, and its previous end of validity."""

    fact: int
    valid_to: str | None


@dataclass(slots=True)
class Moved:
    """Rows moved from one entity to another, by key; stored in the activity for undo.

    Attributes:
        subjects: Facts with it as subject; `objects` likewise.
        twice: Drawer, start and end of mentions that both had at the same place.
    """

    subjects: list[int] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)
    mentions: list[int] = field(default_factory=list)
    twice: list[tuple[int, int, int]] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    superseded: list[Superseded] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, record: dict[str, Any]) -> Moved:
        return cls(
            record["subjects"],
            record["objects"],
            record["mentions"],
            [tuple(one) for one in record["twice"]],
            [Joined(**one) for one in record["joined"]],
            [Superseded(**one) for one in record["superseded"]],
        )


def join(palace: Palace, other: Entity, into: Entity) -> Moved:
    """Move facts and mentions of `other` to `into`, and delete it; the caller merges aliases.

    Of conflicting facts the newer one stays active and the older one is superseded; of duplicates
    the older one stays active, with the evidence of both. The caller locks the palace.
    """
    moved = Moved()
    _settle(palace, other, into, moved)
    facts = Fact.objects.within(palace)
    moved.subjects = _keys(facts.filter(subject=other))
    moved.objects = _keys(facts.filter(object_entity=other))
    facts.filter(subject=other).update(subject=into)
    facts.filter(object_entity=other).update(object_entity=into)
    _move_mentions(palace, other, into, moved)
    remove(other)
    return moved


def remove(entity: Entity) -> None:
    """Delete an entity without rows; Django would search dependent rows in all palaces."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM palace_entity WHERE palace_id = %s AND id = %s",
            [entity.palace_id, entity.pk],
        )


def scope_of(fact: Fact) -> Scope:
    """The scope for events in the fact's history: by a person, for its agent and run."""
    return replace(BY_PERSON, agent=fact.agent, run=fact.run)


def _move_mentions(palace: Palace, other: Entity, into: Entity, moved: Moved) -> None:
    mentions = Mention.objects.filter(palace=palace, entity=other)
    there = Mention.objects.filter(
        palace=palace, entity=into, drawer=OuterRef("drawer"), start=OuterRef("start")
    )
    twice = mentions.filter(Exists(there))
    moved.twice = list(twice.order_by("pk").values_list("drawer_id", "start", "end"))
    twice.delete()
    moved.mentions = _keys(mentions)
    mentions.update(entity=into)


def _settle(palace: Palace, other: Entity, into: Entity, moved: Moved) -> None:
    """Deactivate facts that will be duplicates or conflicts."""
    both = (other.pk, into.pk)
    active = list(
        Fact.objects.within(palace)
        .active()
        .filter(Q(subject__in=both) | Q(object_entity__in=both))
        .order_by("pk")
    )
    for facts in _colliding(active, other, into, _statement):
        first, *rest = sorted(facts, key=_age)
        moved.joined += [_join(palace, fact, first) for fact in rest]
    active = [fact for fact in active if fact.retired_at is None and fact.single]
    for facts in _colliding(active, other, into, _slot):
        *rest, newest = sorted(facts, key=_age)
        moved.superseded += [_supersede(palace, fact, newest) for fact in rest]


def _join(palace: Palace, fact: Fact, into: Fact) -> Joined:
    words = Evidence.objects.filter(palace=palace, fact=into)
    own = set(words.values_list("pk", flat=True))
    take_over_evidence(fact, into)
    _drop(palace, fact, Fact.Fate.REFINED, None, SAID_OF_BOTH)
    return Joined(fact.pk, into.pk, [key for key in _keys(words) if key not in own])


def _supersede(palace: Palace, fact: Fact, newer: Fact) -> Superseded:
    until = fact.valid_to.isoformat() if fact.valid_to else None
    _drop(palace, fact, Fact.Fate.SUPERSEDED, newer.valid_from, TOOK_ITS_PLACE)
    return Superseded(fact.pk, until)


def _drop(palace: Palace, fact: Fact, fate: Fact.Fate, ended_at: datetime | None, why: str) -> None:
    now = timezone.now()
    retire(fact, fate, now, ended_at=ended_at)
    note(
        palace, scope_of(fact), FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=why, at=now
    )


Key = tuple[Hashable, ...]


def _colliding(
    facts: Iterable[Fact],
    other: Entity,
    into: Entity,
    key_of: Callable[[Fact, int, int | None], Key],
) -> Iterable[list[Fact]]:
    """Groups of facts that will have the same key because of the merge."""
    alike: defaultdict[Key, list[Fact]] = defaultdict(list)
    for fact in facts:
        one = {other.pk: into.pk}
        subject = one.get(fact.subject_id, fact.subject_id)
        thing = one.get(fact.object_entity_id or 0, fact.object_entity_id)
        key = key_of(fact, subject, thing)
        if key:
            alike[key].append(fact)
    for group in alike.values():
        concerned = [other.pk in (fact.subject_id, fact.object_entity_id) for fact in group]
        if any(concerned) and not all(concerned):
            yield group


def _slot(fact: Fact, subject: int, _thing: int | None) -> Key:
    """Key of facts of which a subject can have only one at a time."""
    return subject, fact.predicate, fact.aspect, fact.agent, fact.run


def _statement(fact: Fact, subject: int, thing: int | None) -> Key:
    """Key of equal statements; empty for events, which may repeat."""
    if fact.type == Fact.Type.EVENT:
        return ()
    said = thing or (fact.object or fact.text).casefold()
    return *_slot(fact, subject, thing), fact.type, fact.stance, said


def _age(fact: Fact) -> tuple[datetime, datetime, int]:
    """Sort key, oldest validity first; an unknown start is oldest."""
    return fact.valid_from or _LONG_AGO, fact.recorded_at, fact.pk


def _keys(rows: QuerySet[Any]) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))
