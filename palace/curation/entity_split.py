"""Entity split: moves facts and mentions to a new entity; also undo of splits and merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db.models import Q
from django.utils import timezone

from palace.curation.entity_merge import Moved, join, scope_of
from palace.errors import FactConflict
from palace.knowledge.facts.fact_edits import hold_again
from palace.knowledge.facts.fact_writer import note, retire, take_over_evidence
from palace.models import Drawer, Entity, Evidence, Fact, FactEvent, Mention, Palace
from palace.storage.indexing.fact_vectors import copy_vectors

NOT_THE_SAME = "what took its place was said of another"
SPLIT_UNDONE = "a split was undone"
MERGE_UNDONE = "a merge was undone"

# Refined and corrected versions are about the same entity, so they move together.
_SAME_MATTER = (Fact.Fate.REFINED, Fact.Fate.CORRECTED)


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
    for keys, field in ((moved.subjects, "subject"), (moved.objects, "object_entity")):
        since = Q(
            memory__in=all_facts.filter(pk__in=keys).values("memory"), recorded_at__gte=merged_at
        )
        all_facts.filter(Q(pk__in=keys) | since, **{field: keep}).update(**{field: other})
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
        note(
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
    note(palace, scope_of(new), FactEvent.Kind.ADD, new.memory, None, new.text, why=NOT_THE_SAME)
    return new


def _reactivate(palace: Palace, key: int, valid_to: datetime | None = None) -> None:
    """Reactivate a fact that the merge deactivated, with its previous end of validity."""
    fact = Fact.objects.within(palace).filter(pk=key).select_related("subject").first()
    if fact is None:
        return
    superseded = fact.fate == Fact.Fate.SUPERSEDED
    try:
        new = hold_again(palace, fact, scope_of(fact), why=MERGE_UNDONE)
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
