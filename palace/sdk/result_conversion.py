"""Convert rows to the SDK's result types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Min

from language.facts import Verdict
from palace.curation.deletion import Forgotten
from palace.knowledge.facts import StatementOutcome
from palace.knowledge.facts.fact_edits import Rewritten
from palace.models import Evidence, Fact, FactEvent, Palace
from palace.sdk.results import (
    Deleted,
    EventName,
    HistoryRecord,
    KeptWords,
    MemoryEvent,
    MemoryItem,
    UpdatedItem,
)

UNREAD = (
    "The sentence could not be read as one statement about the same subject. Its subject and "
    "predicate stay as they were; it has no object and no connection now."
)
# The fields that are updated from a memory's text.
_FOLLOWING = tuple(
    "memory metadata type subject predicate object aspect stance category valid_from "
    "valid_to".split()
)

# Outcomes in the SDK's terms: a coexisting fact was added.
_EVENTS: Mapping[Verdict, EventName] = {
    Verdict.ADD: "ADD",
    Verdict.COEXIST: "ADD",
    Verdict.UPDATE: "UPDATE",
    Verdict.DELETE: "DELETE",
    Verdict.NONE: "NONE",
}


def items(palace: Palace, facts: Sequence[Fact]) -> list[MemoryItem]:
    """The facts of one palace as items, in order."""
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
        "valid_from": _iso(fact.valid_from),
        "valid_to": _iso(fact.valid_to),
    }


def updated(rewritten: Rewritten) -> UpdatedItem:
    palace, new, old = rewritten.fact.palace, rewritten.fact, rewritten.old
    item = items(palace, [new])[0]
    after: Mapping[str, Any] = item
    before: Mapping[str, Any] = items(palace, [old])[0]
    changed = [name for name in _FOLLOWING if after[name] != before[name]]
    if _words(palace, new) != _words(palace, old):
        changed.append("sources")
    return {**item, "changed": changed, "note": None if rewritten.is_read else UNREAD}


def _words(palace: Palace, fact: Fact) -> set[tuple[int, int]]:
    rows = Evidence.objects.filter(palace=palace, fact=fact)
    return set(rows.values_list("drawer_id", "start"))


def deleted(forgotten: Forgotten) -> Deleted:
    return Deleted(forgotten.facts, kept_words(forgotten), forgotten.kept_total)


def kept_words(forgotten: Forgotten) -> list[KeptWords]:
    return [
        {
            "drawer": str(kept.drawer.uuid),
            "pointer": str(kept.drawer.pointer),
            "session_id": kept.drawer.conversation,
            "why": "other_memory" if kept.memories else "other_source",
            "memories": [str(memory) for memory in kept.memories],
        }
        for kept in forgotten.kept
    ]


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def score_of(cosine: float) -> float:
    """Map a cosine to 0 (opposite) to 1 (same)."""
    return min(max((1 + cosine) / 2, 0.0), 1.0)


def event(line: StatementOutcome) -> MemoryEvent:
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
