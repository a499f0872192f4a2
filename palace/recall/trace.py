"""Trace: the stored record of a recall, which explains what was found and why."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from isolation.raw_sql import fetch_rows
from llm.database_writes import ASYNC_COMMIT, is_disk_full
from llm.models import held_calls, insertion
from palace.models import HitsField, Palace, RecollectionTrace
from palace.models.packed import pack_table
from palace.recall.context_builder import remove_hits
from palace.recall.deduplication import Carried, Composed, Excerpt
from palace.recall.facts import RecalledFact
from palace.recall.index.corpus_stats import read_revision
from palace.recall.query import Query
from palace.recall.raw_sql import Keys, isin_sorted
from palace.recall.recipes import Recipe
from palace.recall.relevance import Relevance
from palace.recall.request import Hit, Narrowing, RecallRequest, Recollection, RequestContext
from palace.recall.scoring import Scored

logger = logging.getLogger(__name__)

# How many rejected candidates a trace stores, and at most how many of those already in the prompt
# and of those that ask the same or are too far from the question: the best of each.
MAX_REJECTED = 50
MAX_EXCLUDED, MAX_TOO_FAR = 20, 10
# Maximum number of terms, names and similar items of the question that a trace stores.
MAX_READ = 40

# How long a room's `recalled_at` stays, so that most recalls write no room.
RECALLED_AGAIN = timedelta(days=1)
_PRESENT = "SELECT uuid FROM palace_drawer WHERE palace_id = %s AND uuid = ANY(%s::uuid[])"
# The key of the recall's conditions in the trace's `reading`.
NARROWED_TO = "narrowed_to"
# The key of the stages of a recipe that the caller has put together.
STAGES_GIVEN = "stages"
KNOWN = "already in the conversation"
REPEATS = "the same question, asked before"
RANKED_LOWER = "ranked lower"
PUT_LOWER = "put lower by a model"
TOO_FAR = "too far from the question"
NO_ROOM = "did not fit the budget of tokens"
SHOWN = "already shown in this conversation"
UNINFORMATIVE_HIT = "only asks or quotes, which is no answer"

# A room that another transaction has locked is skipped: a recall waits for nobody, and a later one
# notes it. The palace is locked first, as a deletion does: the rooms of one that is being deleted
# are left alone.
_RECALLED = """
UPDATE palace_room SET recalled_at = %s WHERE palace_id = %s AND id IN (
    SELECT r.id FROM (
        SELECT id FROM palace_palace WHERE id = %s FOR KEY SHARE SKIP LOCKED
    ) p JOIN palace_room r ON r.palace_id = p.id
    WHERE r.palace_id = %s AND r.id = ANY(%s::bigint[])
    FOR NO KEY UPDATE OF r SKIP LOCKED
)
"""


def keep_trace(
    palace: Palace,
    request: RecallRequest,
    context: RequestContext,
    query: Query,
    scored: Scored,
    recollection: Recollection,
    known: Sequence[RecalledFact],
    composed: Composed,
) -> None:
    """Store the trace of a recall. On a full disk the recall is answered without one.

    Raises:
        Palace.DoesNotExist: The palace was deleted in the meantime.
    """
    rejected = _rejected(scored, recollection, is_rewritten=bool(query.rewritten))
    now = timezone.now()
    record = {
        "palace_id": palace.pk,
        "uuid": recollection.uuid,
        "query": recollection.query,
        "recipe": context.recipe.name,
        "now": query.now,
        "hits": Jsonb(_hits(recollection.hits, composed)),
        "facts": Jsonb(list(_facts(known, composed))),
        "carried": Jsonb([_carried(each) for each in composed.carried]),
        "candidates": Jsonb(_candidates(scored, rejected)),
        "reading": Jsonb(_reading(query, context.recipe, request.narrowing)),
        "figures": Jsonb(_figures(scored, recollection.hits, composed, rejected)),
        "context": composed.packed.without_session,
        "notes": Jsonb(recollection.notes),
        "duration_ms": recollection.duration_ms,
        "created_at": now,
    }
    try:
        _write(record, _rooms_due(recollection.hits, now))
    except IntegrityError:
        Palace.objects.get(pk=palace.pk)
        raise
    except OperationalError as error:
        if not is_disk_full(error):
            raise
        logger.warning("A recall leaves no trace, because the disk is full: %s", error)
        return
    # After the commit, because a concurrent purge cannot see the trace before.
    read = context.corpus_stats.revision
    if recollection.has_sources and read_revision(palace) != read:
        _remove_purged(palace, recollection, composed.packed.without_session)


def _rooms_due(hits: Sequence[Hit], now: datetime) -> list[int]:
    """Keys of the rooms whose `recalled_at` is missing or older than a day, ascending."""
    rooms = {hit.drawer.room_id: hit.drawer.room.recalled_at for hit in hits}
    return sorted(key for key, at in rooms.items() if at is None or at < now - RECALLED_AGAIN)


def _write(record: Mapping[str, Any], rooms: list[int]) -> None:
    """Insert the trace and the calls held back, and note the rooms: one statement, one round trip.

    The commit is asynchronous, because the disk takes longer than all the rest. A power failure
    within the next second may lose the trace, and then also all later rows that refer to it. A
    caller's own transaction keeps its commit mode.
    """
    within = connection.in_atomic_block
    condition = "" if within else f" WHERE {ASYNC_COMMIT}"
    beside, parameters = _beside(record, rooms)
    statement = f"{beside} INSERT INTO palace_recollectiontrace ({', '.join(record)})"
    statement += f" SELECT {', '.join(['%s'] * len(record))}{condition} RETURNING id"
    with transaction.atomic() if within else nullcontext():
        fetch_rows(statement, [*parameters, *record.values()], prepared=True)
    held_calls().clear()


def _beside(record: Mapping[str, Any], rooms: list[int]) -> tuple[str, list[Any]]:
    """What is written in the trace's statement beside the trace, and its parameters."""
    palace = record["palace_id"]
    parts: list[tuple[str, list[Any]]] = []
    if rooms:
        parts.append((f"recalled AS ({_RECALLED})", [record["created_at"], *[palace] * 3, rooms]))
    for place, call in enumerate(held_calls()):
        text, values = insertion(call)
        parts.append((f"call{place} AS ({text})", values))
    beside = f"WITH {', '.join(text for text, _ in parts)}" if parts else ""
    return beside, [value for _, each in parts for value in each]


def _reading(query: Query, recipe: Recipe, narrowing: Narrowing) -> dict[str, Any]:
    conditions = {STAGES_GIVEN: list(recipe.stages), NARROWED_TO: narrowing.record}
    return describe_query(query) | {name: value for name, value in conditions.items() if value}


def describe_query(query: Query) -> dict[str, Any]:
    """How the question was parsed; empty values are left out."""
    time, intent = query.time, query.intent
    read = {
        "terms": query.terms[:MAX_READ],
        "names": intent.names[:MAX_READ],
        "quoted": intent.quoted[:MAX_READ],
        "asks": [
            field.name.removeprefix("asks_")
            for field in fields(intent)
            if getattr(intent, field.name) is True
        ],
        "periods": [
            {"text": p.text, "start": p.start.isoformat(), "end": p.end.isoformat()}
            for p in time.periods[:MAX_READ]
        ],
        "when": [name for name in ("recent", "first", "last") if getattr(time, name)],
        "as_of": query.as_of.isoformat() if query.as_of else None,
        "by_meaning": query.vector is not None,
        "rewritten": query.rewritten,
    }
    return {name: value for name, value in read.items() if value}


def _remove_purged(palace: Palace, recollection: Recollection, context: str) -> None:
    """Remove drawers from the trace that were purged before the trace was committed."""
    carried = [each.line for each in recollection.carried]
    excerpts = [line for line in carried if isinstance(line, Excerpt)]
    hits: list[Hit | Excerpt] = [*recollection.hits, *excerpts]
    known = [*recollection.facts, *(line for line in carried if isinstance(line, RecalledFact))]
    cited = {one.drawer: one.pointer for one in known if one.pointer}
    wanted = {*(hit.drawer.uuid for hit in hits), *cited}
    # As text, because psycopg would adapt each id separately.
    given = [palace.pk, f"{{{','.join(map(str, wanted))}}}"]
    present = {uuid for (uuid,) in fetch_rows(_PRESENT, given, prepared=True)}
    gone = [hit for hit in hits if hit.drawer.uuid not in present]
    purged_sources = [pointer for uuid, pointer in cited.items() if uuid not in present]
    if gone or purged_sources:
        trace = RecollectionTrace.objects.filter(palace=palace, uuid=recollection.uuid)
        trace.update(context=remove_hits(context, gone, purged_sources))


def _hits(hits: Sequence[Hit], composed: Composed) -> list[dict[str, Any]]:
    rows = [_hit(place, hit, composed) for place, hit in enumerate(hits)]
    return HitsField.packed(rows, [hit.signals for hit in hits])


def _hit(place: int, hit: Hit, composed: Composed) -> dict[str, Any]:
    """Without its signals."""
    traced: dict[str, Any] = {
        "drawer": str(hit.drawer.uuid),
        "pointer": str(hit.pointer),
        "score": round(hit.score, 4),
        "passage": list(hit.passage),
    }
    if hit.outdated:
        traced["outdated_since"] = hit.outdated.since.isoformat()
    if hit.place_before is not None:
        traced["place_before"] = hit.place_before
    if not hit.is_informative:
        traced["cut"] = UNINFORMATIVE_HIT
    elif place in composed.packed.left_out:
        traced["cut"] = NO_ROOM
    elif place in composed.duplicate_hits:
        traced["cut"] = SHOWN
    if place in composed.packed.shortened:
        traced["shortened"] = True
    return traced


@dataclass(frozen=True, slots=True)
class Rejected:
    """Candidates rejected for one reason: the indices of the best, their ranks by score from 1 or
    0 for none, and how many there are.
    """

    why: str
    candidates: Sequence[int]
    places: Sequence[int]
    number: int


def _facts(known: Sequence[RecalledFact], composed: Composed) -> Iterator[dict[str, Any]]:
    """The facts in the block, and those that the model could already see."""
    for place, one in enumerate(known):
        if place in composed.packed.facts or place in composed.duplicate_facts - {
            *composed.packed.facts_left_out
        }:
            yield {**_fact(one), **({"cut": SHOWN} if place in composed.duplicate_facts else {})}


def _fact(known: RecalledFact) -> dict[str, Any]:
    """Without the text, so that editing or purging the fact needs no change of traces."""
    return {
        "memory": str(known.memory),
        "drawer": str(known.drawer) if known.drawer else None,
        "pointer": str(known.pointer) if known.pointer else None,
        "score": round(known.score, 4),
    }


def _carried(each: Carried) -> dict[str, Any]:
    memory = {"memory": str(each.line.memory)} if isinstance(each.line, RecalledFact) else {}
    return {
        "item": each.entry.item,
        "turn": each.entry.turn,
        "drawer": str(each.drawer) if each.drawer else None,
        "pointer": str(each.line.pointer) if each.line.pointer else None,
        **memory,
    }


def _rejected(scored: Scored, recollection: Recollection, *, is_rewritten: bool) -> list[Rejected]:
    """Rejected candidates by reason, in display order."""
    hits = recollection.hits
    taken = np.array(sorted({hit.drawer.pk for hit in hits}), dtype=np.int64)
    drawers, order, too_far = scored.candidates.drawers, scored.order, scored.too_far
    others = np.flatnonzero(~isin_sorted(drawers[order], taken))
    reranked = is_rewritten or any(hit.place_before is not None for hit in hits)
    put_lower = int(np.searchsorted(others, len(hits))) if reranked else 0
    # The latest drawers, and hits of rewritten questions, may be too far from the question itself.
    if recollection.is_opening or is_rewritten:
        too_far = too_far[~isin_sorted(drawers[too_far], taken)]
    return [
        _unplaced(KNOWN, scored.excluded, MAX_EXCLUDED),
        _unplaced(REPEATS, scored.repeats, MAX_TOO_FAR),
        _placed(PUT_LOWER, order, others[:put_lower]),
        _placed(RANKED_LOWER, order, others[put_lower:]),
        _unplaced(TOO_FAR, too_far, MAX_TOO_FAR),
    ]


def _unplaced(why: str, candidates: Keys, most: int) -> Rejected:
    best = candidates[:most].tolist()
    return Rejected(why, best, [0] * len(best), len(candidates))


def _placed(why: str, order: Keys, ranks: Keys) -> Rejected:
    """
    Args:
        order: All candidates, best first; `ranks` index it.
    """
    best = ranks[:MAX_REJECTED]
    return Rejected(why, order[best].tolist(), (best + 1).tolist(), len(ranks))


def _candidates(scored: Scored, rejected: Sequence[Rejected]) -> dict[str, Any]:
    """The best rejected candidates, in the format of `RecollectionTrace.candidates`."""
    which: list[int] = []
    places: list[int] = []
    reasons: list[tuple[str, int]] = []
    for each in rejected:
        some = each.candidates[: MAX_REJECTED - len(which)]
        which += some
        places += each.places[: len(some)]
        if some:
            reasons.append((each.why, len(some)))
    signals, shares = scored.signal_table(which)
    return {
        "signals": signals,
        "drawers": scored.candidates.drawers[which].tolist(),
        "why": reasons,
        "table": pack_table(np.column_stack([places, scored.scores[which], shares])),
    }


def _figures(
    scored: Scored,
    hits: Sequence[Hit],
    composed: Composed,
    rejected: Sequence[Rejected],
) -> dict[str, Any]:
    return {
        "looked_at": len(scored.candidates),
        "cut": {each.why: each.number for each in rejected if each.number},
        "given": composed.hits_in_block,
        "carried": len(composed.carried),
        "budget_tokens": composed.packed.budget,
        "floor": _floor(scored.relevance),
    }


def _floor(relevance: Relevance) -> dict[str, Any]:
    """How close the palace was to the question, and the threshold."""
    near = relevance.closeness
    return {
        "refused": relevance.is_refused,
        "exempt": relevance.exempt,
        "log_odds": round(relevance.log_odds, 3),
        "least": relevance.least,
        "cosine": round(near.cosine, 3),
        "words": round(near.words, 3),
        "known": round(near.known, 3),
        "personal": near.personal,
    }
