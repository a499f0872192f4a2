"""Rows as callers see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Min

from palace.facts.applying import Remembered
from palace.facts.judgement import Verdict
from palace.models import Fact, FactEvent, Palace
from palace.sdk.results import EventName, HistoryRecord, MemoryEvent, MemoryItem

# What coexists was added, in the words of callers.
_EVENTS: Mapping[Verdict, EventName] = {
    Verdict.ADD: "ADD",
    Verdict.COEXIST: "ADD",
    Verdict.UPDATE: "UPDATE",
    Verdict.DELETE: "DELETE",
    Verdict.NONE: "NONE",
}


def items(palace: Palace, facts: Sequence[Fact]) -> list[MemoryItem]:
    """The facts of one palace, in their order."""
    created = _created(palace, [fact.memory for fact in facts])
    return [_item(palace, fact, created.get(fact.memory, fact.recorded_at)) for fact in facts]


def _created(palace: Palace, memories: Iterable[UUID]) -> dict[UUID, datetime]:
    versions = Fact.objects.within(palace).filter(memory__in=memories).order_by()
    return dict(versions.values_list("memory").annotate(Min("recorded_at")))


def _item(palace: Palace, fact: Fact, created: datetime) -> MemoryItem:
    return {
        "id": str(fact.memory),
        "memory": fact.text,
        "hash": fact.hash,
        "metadata": fact.metadata,
        "created_at": created.isoformat(),
        "updated_at": fact.recorded_at.isoformat(),
        "user_id": palace.subject or None,
        "agent_id": fact.agent or None,
        "run_id": fact.run or None,
        "type": fact.type,
        "subject": fact.subject.name,
        "predicate": fact.predicate,
        "object": fact.object,
        "aspect": fact.aspect,
        "stance": fact.stance,
        "category": fact.category,
        "tags": fact.tags,
        "confidence": fact.confidence,
        "valid_from": _told(fact.valid_from),
        "valid_to": _told(fact.valid_to),
    }


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def score_of(cosine: float) -> float:
    """0 for opposite texts, 1 for the same one."""
    return min(max((1 + cosine) / 2, 0.0), 1.0)


def event(line: Remembered) -> MemoryEvent:
    return {
        "event": _EVENTS[line.verdict],
        "id": str(line.memory),
        "old_memory": line.old_text or None,
        "new_memory": line.new_text or None,
        "metadata": line.fact.metadata if line.fact else {},
    }


def record(event: FactEvent) -> HistoryRecord:
    return {
        "id": str(event.uuid),
        "memory_id": str(event.memory),
        "event": event.event,
        "old_value": event.old_text,
        "new_value": event.new_text,
        "timestamp": event.at.isoformat(),
        "is_deleted": event.event == FactEvent.Kind.DELETE,
        "why": event.why,
        "by": event.by,
    }
