"""Move facts and mentions between entities: merge, split, and undo of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from language.errors import FactConflict
from palace.knowledge.facts import (
    TOOK_ITS_PLACE,
    Scope,
    append_to_chain,
    record_event,
    retire,
    take_over_evidence,
)
from palace.knowledge.facts.fact_edits import reactivate
from palace.models import Drawer, Entity, Evidence, Fact, FactEvent, Mention, Palace
from palace.storage.indexing.fact_vectors import copy_vectors

NOT_THE_SAME = "what took its place was said of another"
SPLIT_UNDONE = "a split was undone"
MERGE_UNDONE = "a merge was undone"
# Refined and corrected versions are about the same entity, so they move together.
_SAME_MATTER = (Fact.Fate.REFINED, Fact.Fate.CORRECTED)
BY_PERSON = Scope("person")
SAID_OF_BOTH = "the same was held of an entity merged with it"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
Key = tuple[Hashable, ...]


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

    @property
    def has_rows(self) -> bool:
        return bool(self.subjects or self.objects or self.mentions or self.twice)

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
    append_to_chain(palace, into, fact)
    return Joined(fact.pk, into.pk, [key for key in _keys(words) if key not in own])


def _supersede(palace: Palace, fact: Fact, newer: Fact) -> Superseded:
    until = fact.valid_to.isoformat() if fact.valid_to else None
    _drop(palace, fact, Fact.Fate.SUPERSEDED, newer.valid_from, TOOK_ITS_PLACE)
    append_to_chain(palace, newer, fact)
    return Superseded(fact.pk, until)


def _drop(palace: Palace, fact: Fact, fate: Fact.Fate, ended_at: datetime | None, why: str) -> None:
    now = timezone.now()
    retire(fact, fate, now, ended_at=ended_at)
    record_event(
        palace, scope_of(fact), FactEvent.Kind.DELETE, fact.memory, fact.text, None, why=why, at=now
    )


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


def split_rows(
    palace: Palace,
    entity: Entity,
    new: Entity,
    facts: Sequence[Fact],
    mentions: Sequence[Mention],
) -> dict[str, Any]:
    """Move rows to the new entity; returns the undo record. The caller locks the palace."""
    rows = {fact.pk: fact for fact in _with_earlier_versions(palace, facts)}
    subjects = [key for key, fact in rows.items() if fact.subject_id == entity.pk]
    objects = [key for key, fact in rows.items() if fact.object_entity_id == entity.pk]
    all_facts = Fact.objects.within(palace)
    all_facts.filter(pk__in=subjects).update(subject=new)
    all_facts.filter(pk__in=objects).update(object_entity=new)
    named = [mention.pk for mention in mentions]
    Mention.objects.filter(palace=palace, pk__in=named).update(entity=new)
    revived = [
        {"was": old.pk, "is": _revive(palace, old).pk}
        for old in _superseded_across(palace, entity, new)
    ]
    return {"subjects": subjects, "objects": objects, "mentions": named, "revived": revived}


def undo_merge(
    palace: Palace, keep: Entity, other: Entity, moved: Moved, *, merged_at: datetime
) -> None:
    """Move back what a merge moved to `keep`, including newer versions of those memories.

    Facts that the merge deactivated become active again, unless another fact is active in their
    place.
    """
    all_facts = Fact.objects.within(palace)
    for keys, column in ((moved.subjects, "subject"), (moved.objects, "object_entity")):
        since = Q(
            memory__in=all_facts.filter(pk__in=keys).values("memory"), recorded_at__gte=merged_at
        )
        all_facts.filter(Q(pk__in=keys) | since, **{column: keep}).update(**{column: other})
    mentions = Mention.objects.filter(palace=palace, pk__in=moved.mentions, entity=keep)
    mentions.update(entity=other)
    _restore_mentions(palace, other, moved.twice)
    for joined in moved.joined:
        Evidence.objects.filter(palace=palace, fact=joined.into, pk__in=joined.words).delete()
        if all_facts.active().filter(pk=joined.into).exists():
            _reactivate(palace, joined.fact)
    for superseded in moved.superseded:
        until = superseded.valid_to
        _reactivate(palace, superseded.fact, datetime.fromisoformat(until) if until else None)


def undo_split(palace: Palace, entity: Entity, new: Entity, record: dict[str, Any]) -> None:
    """Undo a split: move all rows of the new entity back."""
    for revived in record["revived"]:
        fact = Fact.objects.within(palace).active().filter(pk=revived["is"]).first()
        if fact is None:
            continue
        retire(fact, Fact.Fate.CORRECTED, timezone.now())
        record_event(
            palace, scope_of(fact), FactEvent.Kind.DELETE, fact.memory, fact.text, None,
            why=SPLIT_UNDONE,
        )  # fmt: skip
        was = Fact.objects.within(palace).filter(pk=revived["was"])
        was.update(fate=Fact.Fate.SUPERSEDED)
    join(palace, new, entity)


def _with_earlier_versions(palace: Palace, facts: Iterable[Fact]) -> list[Fact]:
    found = {fact.pk: fact for fact in facts}
    rows = list(found.values())
    while before := {fact.supersedes_id for fact in rows if fact.supersedes_id} - found.keys():
        same = Fact.objects.within(palace).filter(fate__in=_SAME_MATTER)
        rows = list(same.filter(pk__in=before))
        found |= {fact.pk: fact for fact in rows}
    return list(found.values())


def _superseded_across(palace: Palace, entity: Entity, new: Entity) -> list[Fact]:
    """Facts about one entity that were superseded by a fact that is now about the other."""
    across = Q(subject=entity, superseded_by__subject=new)
    across |= Q(subject=new, superseded_by__subject=entity)
    facts = Fact.objects.within(palace).filter(across, fate=Fact.Fate.SUPERSEDED)
    return [fact for fact in facts.distinct().order_by("pk") if not _is_taken(palace, fact)]


def _is_taken(palace: Palace, fact: Fact) -> bool:
    """Whether another fact is active where there can be only one."""
    active = Fact.objects.within(palace).active().filter(single=True, subject=fact.subject_id)
    same = active.filter(
        predicate=fact.predicate, aspect=fact.aspect, agent=fact.agent, run=fact.run
    )
    return fact.single and same.exists()


def _revive(palace: Palace, old: Fact) -> Fact:
    """Reactivate it as a new memory: its former memory is about the other entity."""
    new = Fact.objects.within(palace).get(pk=old.pk)
    new.pk, new._state.adding = None, True
    new.uuid, new.memory, new.supersedes = uuid4(), uuid4(), old
    new.retired_at, new.fate, new.recorded_at = None, Fact.Fate.NONE, timezone.now()
    new.opened_by, new.closed_by, new.withdrawn_at = None, None, None
    new.settled_at = new.recorded_at
    if Fact.objects.within(palace).filter(supersedes=old, valid_from=old.valid_to).exists():
        new.valid_to = None
    # The other fact did not end this one, so the old row must not count as having been true.
    old.fate, old.closed_by, old.withdrawn_at = Fact.Fate.CORRECTED, None, new.recorded_at
    old.save(update_fields=["fate", "closed_by", "withdrawn_at"])
    new.save()
    take_over_evidence(old, new)
    copy_vectors(old, new)
    record_event(
        palace, scope_of(new), FactEvent.Kind.ADD, new.memory, None, new.text, why=NOT_THE_SAME
    )
    return new


def _reactivate(palace: Palace, key: int, valid_to: datetime | None = None) -> None:
    """Reactivate a fact that the merge deactivated, with its previous end of validity."""
    fact = Fact.objects.within(palace).filter(pk=key).select_related("subject").first()
    if fact is None:
        return
    superseded = fact.fate == Fact.Fate.SUPERSEDED
    try:
        new = reactivate(palace, fact, scope_of(fact), why=MERGE_UNDONE)
    except FactConflict:
        return
    if superseded:
        Fact.objects.within(palace).filter(pk=new.pk).update(valid_to=valid_to)
        # The old row must not also count as having been true.
        Fact.objects.within(palace).filter(pk=fact.pk).update(fate=Fact.Fate.CORRECTED)


def _restore_mentions(
    palace: Palace, entity: Entity, places: Sequence[tuple[int, int, int]]
) -> None:
    drawers = {drawer for drawer, _start, _end in places}
    there = set(Drawer.objects.within(palace).filter(pk__in=drawers).values_list("pk", flat=True))
    Mention.objects.bulk_create(
        [
            Mention(palace=palace, entity=entity, drawer_id=drawer, start=start, end=end)
            for drawer, start, end in places
            if drawer in there
        ],
        ignore_conflicts=True,
    )
