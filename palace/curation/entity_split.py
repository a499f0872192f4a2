"""What one entity has, given to two; and both ways of undoing that, or a merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db.models import Q
from django.utils import timezone

from palace.curation.entity_merge import Moved, join, told_by
from palace.errors import FactConflict
from palace.knowledge.facts.fact_edits import hold_again
from palace.knowledge.facts.fact_writer import note, retire, take_over_evidence
from palace.models import Drawer, Entity, Evidence, Fact, FactEvent, Mention, Palace
from palace.storage.indexing.fact_vectors import copy_vectors

NOT_THE_SAME = "what took its place was said of another"
SPLIT_UNDONE = "a split was undone"
MERGE_UNDONE = "a merge was undone"

# What makes a statement more exact, or right, is about the same: it goes where that goes.
_SAME_MATTER = (Fact.Fate.REFINED, Fact.Fate.CORRECTED)


def part(
    palace: Palace,
    entity: Entity,
    new: Entity,
    facts: Sequence[Fact],
    mentions: Sequence[Mention],
) -> dict[str, Any]:
    """Give these to the new entity; returns what an activity keeps of it. Call it with the lock."""
    rows = {fact.pk: fact for fact in _with_what_they_refined(palace, facts)}
    subjects = [key for key, fact in rows.items() if fact.subject_id == entity.pk]
    objects = [key for key, fact in rows.items() if fact.object_entity_id == entity.pk]
    held = Fact.objects.within(palace)
    held.filter(pk__in=subjects).update(subject=new)
    held.filter(pk__in=objects).update(object_entity=new)
    named = [mention.pk for mention in mentions]
    Mention.objects.filter(palace=palace, pk__in=named).update(entity=new)
    revived = [
        {"was": old.pk, "is": _revive(palace, old).pk}
        for old in _wrongly_superseded(palace, entity, new)
    ]
    return {"subjects": subjects, "objects": objects, "mentions": named, "revived": revived}


def put_apart(
    palace: Palace, keep: Entity, other: Entity, moved: Moved, *, merged_at: datetime
) -> None:
    """Give back what went to `keep` in a merge; memories that have changed since go along.

    What was dropped by the merge holds again, unless something else is held in its place.
    """
    held = Fact.objects.within(palace)
    for keys, field in ((moved.subjects, "subject"), (moved.objects, "object_entity")):
        since = Q(memory__in=held.filter(pk__in=keys).values("memory"), recorded_at__gte=merged_at)
        held.filter(Q(pk__in=keys) | since, **{field: keep}).update(**{field: other})
    mentions = Mention.objects.filter(palace=palace, pk__in=moved.mentions, entity=keep)
    mentions.update(entity=other)
    _mention_again(palace, other, moved.twice)
    for joined in moved.joined:
        Evidence.objects.filter(palace=palace, fact=joined.into, pk__in=joined.words).delete()
        if held.active().filter(pk=joined.into).exists():
            _hold_again(palace, joined.fact)
    for superseded in moved.superseded:
        until = superseded.valid_to
        _hold_again(palace, superseded.fact, datetime.fromisoformat(until) if until else None)


def put_together(palace: Palace, entity: Entity, new: Entity, record: dict[str, Any]) -> None:
    """Undo a split: all that the new entity has by now goes back."""
    for revived in record["revived"]:
        fact = Fact.objects.within(palace).active().filter(pk=revived["is"]).first()
        if fact is None:
            continue
        retire(fact, Fact.Fate.CORRECTED, timezone.now())
        note(
            palace, told_by(fact), FactEvent.Kind.DELETE, fact.memory, fact.text, None,
            why=SPLIT_UNDONE,
        )  # fmt: skip
        was = Fact.objects.within(palace).filter(pk=revived["was"])
        was.update(fate=Fact.Fate.SUPERSEDED)
    join(palace, new, entity)


def _with_what_they_refined(palace: Palace, facts: Iterable[Fact]) -> list[Fact]:
    found = {fact.pk: fact for fact in facts}
    rows = list(found.values())
    while before := {fact.supersedes_id for fact in rows if fact.supersedes_id} - found.keys():
        same = Fact.objects.within(palace).filter(fate__in=_SAME_MATTER)
        rows = list(same.filter(pk__in=before))
        found |= {fact.pk: fact for fact in rows}
    return list(found.values())


def _wrongly_superseded(palace: Palace, entity: Entity, new: Entity) -> list[Fact]:
    """Facts about one of the two whose place was taken by a fact that is about the other now."""
    parted = Q(subject=entity, superseded_by__subject=new)
    parted |= Q(subject=new, superseded_by__subject=entity)
    facts = Fact.objects.within(palace).filter(parted, fate=Fact.Fate.SUPERSEDED)
    return [fact for fact in facts.distinct().order_by("pk") if not _is_taken(palace, fact)]


def _is_taken(palace: Palace, fact: Fact) -> bool:
    """Whether another fact is held where there can be one only."""
    held = Fact.objects.within(palace).active().filter(single=True, subject=fact.subject_id)
    same = held.filter(predicate=fact.predicate, aspect=fact.aspect, agent=fact.agent, run=fact.run)
    return fact.single and same.exists()


def _revive(palace: Palace, old: Fact) -> Fact:
    """Hold it again as a memory of its own: the one it was part of is about somebody else."""
    new = Fact.objects.within(palace).get(pk=old.pk)
    new.pk, new._state.adding = None, True
    new.uuid, new.memory, new.supersedes = uuid4(), uuid4(), old
    new.retired_at, new.fate, new.recorded_at = None, Fact.Fate.NONE, timezone.now()
    new.opened_by, new.closed_by, new.withdrawn_at = None, None, None
    new.settled_at = new.recorded_at
    if Fact.objects.within(palace).filter(supersedes=old, valid_from=old.valid_to).exists():
        new.valid_to = None
    # It was no end of this that the other one brought: told once, it goes on.
    old.fate, old.closed_by, old.withdrawn_at = Fact.Fate.CORRECTED, None, new.recorded_at
    old.save(update_fields=["fate", "closed_by", "withdrawn_at"])
    new.save()
    take_over_evidence(old, new)
    copy_vectors(old, new)
    note(palace, told_by(new), FactEvent.Kind.ADD, new.memory, None, new.text, why=NOT_THE_SAME)
    return new


def _hold_again(palace: Palace, key: int, valid_to: datetime | None = None) -> None:
    """What the merge dropped; where it was superseded, it ends when it was to end before."""
    fact = Fact.objects.within(palace).filter(pk=key).select_related("subject").first()
    if fact is None:
        return
    superseded = fact.fate == Fact.Fate.SUPERSEDED
    try:
        new = hold_again(palace, fact, told_by(fact), why=MERGE_UNDONE)
    except FactConflict:
        return
    if superseded:
        Fact.objects.within(palace).filter(pk=new.pk).update(valid_to=valid_to)
        # Told twice it would be, did the first still count as what was so.
        Fact.objects.within(palace).filter(pk=fact.pk).update(fate=Fact.Fate.CORRECTED)


def _mention_again(palace: Palace, entity: Entity, places: Sequence[tuple[int, int, int]]) -> None:
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
