"""Operations on one memory by its id, in any of the owner's palaces."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import F, Q

from palace.curation.fact_deletion import delete_fact
from palace.errors import NoSuchFact
from palace.knowledge.facts import fact_edits
from palace.models import Fact, FactEvent
from palace.models.facts import FactQuerySet
from palace.models.palace import PalaceQuerySet
from palace.sdk import arguments, shown
from palace.sdk.results import Deleted, HistoryRecord, MemoryItem, UpdatedItem
from palace.sdk.scope import CallScope

# Called with the locked memory before a change; raise to abort.
Check = Callable[[MemoryItem], None]


def as_it_may_be(item: MemoryItem) -> None:
    """Accept any current state."""


def find(palaces: PalaceQuerySet, memory_id: str) -> MemoryItem | None:
    """An active memory, or one that was stated as past; else None."""
    versions = _versions(palaces, memory_id)
    past = versions.filter(_is_past_version()).order_by("-recorded_at", "-pk")
    fact = versions.active().first() or past.first()
    return _item(fact) if fact else None


def rewrite(
    palaces: PalaceQuerySet, memory_id: str, new_text: str, check: Check = as_it_may_be
) -> UpdatedItem:
    """
    Raises:
        NoSuchFact: there is no such memory; BadInput: the text cannot be stored; FactConflict.
    """
    text, fact = arguments.statement_of(new_text), _active_fact(palaces, memory_id)
    by = _scope_of(fact).writing()
    return shown.updated(
        fact_edits.rewrite(
            fact.palace, fact.memory, text, by, check=lambda current: check(_item(current))
        )
    )


def delete(palaces: PalaceQuerySet, memory_id: str, check: Check = as_it_may_be) -> Deleted:
    """Delete a memory, and messages sent to the fact API that only it uses.

    Raises:
        NoSuchFact: there is no such memory.
    """
    fact = _active_fact(palaces, memory_id)
    by = _scope_of(fact).writing()
    return shown.deleted(
        delete_fact(fact.palace, fact.memory, by, check=lambda current: check(_item(current)))
    )


def history(palaces: PalaceQuerySet, memory_id: str) -> list[HistoryRecord]:
    """All changes, oldest first.

    Raises:
        NoSuchFact: there never was such a memory.
    """
    key = arguments.key_of(memory_id)
    events = FactEvent.objects.filter(palace__in=palaces, memory=key)
    records = [shown.record(event) for event in events.order_by("at", "pk")] if key else []
    if not records:
        raise NoSuchFact(memory_id)
    return records


def _active_fact(palaces: PalaceQuerySet, memory_id: str) -> Fact:
    fact = _versions(palaces, memory_id).active().first()
    if fact is None:
        raise NoSuchFact(memory_id)
    return fact


def _versions(palaces: PalaceQuerySet, memory_id: str) -> FactQuerySet:
    """All versions of a memory."""
    key = arguments.key_of(memory_id)
    if key is None:
        return Fact.objects.none()
    facts = Fact.objects.filter(palace__in=palaces, memory=key)
    return facts.select_related("palace", "subject")


def _is_past_version() -> Q:
    """Facts stated as past were never active; they exist for `true_at`."""
    return Q(retired_at=F("recorded_at"), fate__in=Fact.WAS_TRUE)


def _scope_of(fact: Fact) -> CallScope:
    return CallScope(fact.palace.subject, fact.agent, fact.run)


def _item(fact: Fact) -> MemoryItem:
    return shown.items(fact.palace, [fact])[0]
