"""Response bodies of the memory service, and the ids of turns."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4, uuid5

from django.db.models import Prefetch

from palace.models import Drawer, Evidence, Fact, FactQuerySet, IdempotentWrite, Palace
from palace.pipeline import AtOnce
from palace.recall import Citation, Recollection

SNIPPET_CHARS = 160
NOTHING_RECALLED: dict[str, Any] = {
    "context": "",
    "citations": [],
    "tokens": 0,
    "recollection": None,
    "notes": [],
}
NOTHING_FOUND: dict[str, Any] = {"results": [], "recollection": None, "notes": []}
SOURCE = "api"
# A session is a conversation named by a program: in a turn, as the fact API's `run_id`, by MCP's
# `remember`, or through the proxy.
SESSION_SOURCES = (SOURCE, "sdk", "mcp", "proxy")
_AGAIN = UUID("4c76be0a-6a17-4f8c-9d59-6df4e2b3a9d1")


def kept(turn: str, session: str, done: AtOnce) -> dict[str, Any]:
    return {
        "id": turn,
        "session_id": session,
        "drawers": [drawer.uuid for drawer in done.drawers],
        "extraction": "degraded" if done.notes else "complete",
        "notes": list(done.notes),
    }


def recalled(palace: Palace, recollection: Recollection) -> dict[str, Any]:
    drawers = _cited_drawers(palace, recollection)
    return {
        "context": recollection.context,
        "citations": [_citation(each, recollection, drawers) for each in recollection.citations],
        "tokens": recollection.context_tokens,
        "recollection": recollection.uuid,
        "notes": list(recollection.notes),
    }


def _cited_drawers(palace: Palace, recollection: Recollection) -> dict[str, Drawer]:
    """By pointer."""
    found = {str(hit.pointer): hit.drawer for hit in recollection.hits}
    by_uuid = {fact.drawer: str(fact.pointer) for fact in recollection.facts if fact.drawer}
    for drawer in Drawer.objects.within(palace).filter(uuid__in=list(by_uuid)):
        found.setdefault(by_uuid[drawer.uuid], drawer)
    return found


def _citation(
    citation: Citation, recollection: Recollection, drawers: dict[str, Drawer]
) -> dict[str, Any]:
    drawer = drawers.get(str(citation.pointer)) if citation.pointer else None
    score, text = _score_and_text(citation, recollection)
    return {
        "turn_id": turn_of(drawer) if drawer else None,
        "score": round(score, 6),
        "snippet": text[:SNIPPET_CHARS],
        "pointer": str(citation.pointer) if citation.pointer else None,
        "drawer": drawer.uuid if drawer else None,
        "memory": citation.memory,
    }


def _score_and_text(citation: Citation, recollection: Recollection) -> tuple[float, str]:
    if citation.memory is not None:
        for fact in recollection.facts:
            if fact.memory == citation.memory:
                return fact.score, fact.text
    for hit in recollection.hits:
        if hit.pointer == citation.pointer:
            return hit.score, hit.drawer.text[slice(*hit.passage)]
    return 0.0, ""


def found(recollection: Recollection) -> dict[str, Any]:
    results = [
        {
            "content": hit.drawer.text,
            "score": round(hit.score, 6),
            "session_id": hit.drawer.conversation,
            "timestamp": hit.drawer.said_at,
            "metadata": hit.drawer.metadata or {},
            "role": hit.drawer.role,
            "turn_id": turn_of(hit.drawer),
            "drawer": hit.drawer.uuid,
            "pointer": str(hit.pointer),
            "signals": {name: round(share, 6) for name, share in hit.signals.items()},
            "outdated_since": hit.outdated.since if hit.outdated else None,
        }
        for hit in recollection.hits
    ]
    return {
        "results": results,
        "recollection": recollection.uuid,
        "notes": list(recollection.notes),
    }


def memories(facts: FactQuerySet, limit: int) -> list[dict[str, Any]]:
    """Newest first."""
    words = Evidence.objects.select_related("drawer").order_by("-drawer__said_at", "start")
    rows = facts.select_related("subject", "supersedes").prefetch_related(
        Prefetch("evidence", words)
    )
    return [_memory(fact) for fact in rows.order_by("-recorded_at", "-pk")[:limit]]


def _memory(fact: Fact) -> dict[str, Any]:
    drawers = [each.drawer for each in fact.evidence.all() if each.drawer.trashed_at is None]
    drawer = drawers[0] if drawers else None
    return {
        "id": fact.uuid,
        "memory": fact.memory,
        "type": fact.type,
        "subject": fact.subject.name,
        "key": fact.predicate,
        "value": fact.object,
        "aspect": fact.aspect or None,
        "stance": fact.stance or None,
        "text": fact.text,
        "confidence": fact.confidence,
        "source_session": drawer.conversation if drawer else None,
        "source_turn": turn_of(drawer) if drawer else None,
        "created_at": fact.recorded_at,
        "updated_at": fact.retired_at or fact.recorded_at,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "supersedes": fact.supersedes.uuid if fact.supersedes else None,
        "active": fact.retired_at is None,
    }


def new_turn(write: IdempotentWrite | None) -> str:
    """The turn id: the same for the same write, so a repeated request files nothing twice."""
    return str(uuid5(_AGAIN, str(write.pk)) if write else uuid4())


def message_id(turn: str, place: int) -> str:
    return f"{turn}/{place}"


def turn_of(drawer: Drawer) -> str:
    """The drawer's turn id; the drawer's own id if it came by another API."""
    if drawer.source == SOURCE:
        return drawer.external_id.rpartition("/")[0] or str(drawer.uuid)
    return str(drawer.uuid)
