"""Correct facts by hand: an end, another subject, and undo of both and of edits."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from palace.errors import FactConflict
from palace.knowledge.facts.edited_sentence import content_of
from palace.knowledge.facts.fact_edits import copy_of, current, reactivate, replace_version
from palace.knowledge.facts.fact_writer import record_event, retire
from palace.knowledge.facts.ingestion_options import Scope
from palace.models import Entity, Fact, FactEvent, Palace
from palace.storage.indexing.fact_vectors import copy_vectors, fill_missing
from palace.storage.indexing.spaces import active_space

WRONG = "it is wrong"
OUTDATED = "it is over"
UNDONE = "an edit was undone"


def renamed(text: str, old: Entity, new: Entity) -> str:
    """The sentence with the name of `new` wherever it has a name of `old`."""
    names = sorted({old.name, *old.aliases} - {""}, key=len, reverse=True)
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")
    return named.sub(lambda _: new.name, text)


def end_on(palace: Palace, memory: UUID, moment: datetime, scope: Scope) -> Fact:
    """End a fact that was true until `moment`; returns the row, which is inactive now.

    Raises:
        NoSuchFact: the palace has no such memory, or it is inactive.
    """
    with transaction.atomic():
        palace.lock()
        fact = current(palace, memory)
        now = timezone.now()
        retire(fact, Fact.Fate.ENDED, now, ended_at=moment)
        record_event(
            palace, scope, FactEvent.Kind.DELETE, memory, fact.text, None, why=OUTDATED, at=now
        )
    return fact


def undo_end(palace: Palace, fact: Fact, until: datetime | None, scope: Scope) -> Fact:
    """Reactivate what `end_on` ended. Idempotent.

    Args:
        until: Its end before that.

    Raises:
        FactConflict: something else is active in its place.
    """
    with transaction.atomic():
        palace.lock()
        active = Fact.objects.within(palace).active().filter(memory=fact.memory).first()
        if active is not None and active.supersedes_id == fact.pk:
            return active
        fact = Fact.objects.within(palace).get(pk=fact.pk)
        again = reactivate(palace, fact, scope, why=UNDONE)
        if again.valid_to != until:
            again.valid_to = until
            again.save(update_fields=["valid_to"])
    return again


def undo_edit(palace: Palace, before: Fact, after: Fact, scope: Scope) -> Fact:
    """Put a version back in place of the one that an edit made of it. Idempotent.

    Raises:
        NoSuchFact: the memory is inactive.
        FactConflict: it was changed again since, or another fact is active in its place.
    """
    with transaction.atomic():
        palace.lock()
        active = current(palace, before.memory)
        if content_of(active) == content_of(before):
            return active
        if active.pk != after.pk:
            raise FactConflict(active.text)
        new = copy_of(before)
        new.supersedes, new.recorded_at = active, timezone.now()
        replace_version(palace, active, new, scope)
        copy_vectors(before, new)
    fill_missing(palace, active_space(), [new])
    return new


def by_person(fact: Fact) -> Scope:
    """The scope of a person's changes, with the fact's agent and run."""
    return replace(Scope("person"), agent=fact.agent, run=fact.run)
