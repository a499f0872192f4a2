"""Tracing: the record of a recall, for whoever asks later what was found and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from palace.models import Palace, RecollectionTrace
from palace.recall.carried_context import Carried, Stretch
from palace.recall.context_builder import without
from palace.recall.deduplication import Composed
from palace.recall.facts import KnownFact
from palace.recall.query import Query
from palace.recall.raw_sql import fetch_rows
from palace.recall.recipes import Recipe
from palace.recall.recollection import Hit, Recollection
from palace.recall.relevance import Relevance
from palace.recall.scoring import Scored

# How many of the candidates that are no hits a trace keeps, and at most how many of those that
# whoever asked had before them, or that had nothing to do with it: the best of each.
TRACED = 50
TRACED_KNOWN, TRACED_TOO_FAR = 20, 10
# Of the question's words, names and the like, so many are kept.
READ = 40

# Always so, and for the rest of the transaction.
_WITHOUT_WAITING = "set_config('synchronous_commit', 'off', true) = 'off'"

KNOWN = "already in the conversation"
RANKED_LOWER = "ranked lower"
PUT_LOWER = "put lower by a model"
TOO_FAR = "too far from the question"
NO_ROOM = "did not fit the budget of tokens"
SHOWN = "already shown in this conversation"
TELLS_NOTHING = "only asks or quotes, which is no answer"


def keep_trace(
    palace: Palace,
    query: Query,
    recipe: Recipe,
    scored: Scored,
    recollection: Recollection,
    known: Sequence[KnownFact],
    told: Composed,
) -> None:
    """Put a recall on record, and from then on let a purge take its words out of it.

    Raises:
        Palace.DoesNotExist: The palace was deleted meanwhile.
    """
    cut = _cut(scored, recollection)
    record = {
        "palace_id": palace.pk,
        "uuid": recollection.uuid,
        "query": recollection.query,
        "recipe": recipe.name,
        "now": query.now,
        "hits": Jsonb([_hit(place, hit, told) for place, hit in enumerate(recollection.hits)]),
        "facts": Jsonb(list(_facts(known, told))),
        "carried": Jsonb([_carried(each) for each in told.carried]),
        "candidates": Jsonb(_candidates(scored, cut)),
        "reading": Jsonb(read_as(query)),
        "figures": Jsonb(_figures(scored, recollection.hits, told, cut)),
        "context": told.packed.on_record,
        "notes": Jsonb(recollection.notes),
        "duration_ms": recollection.duration_ms,
        "created_at": timezone.now(),
    }
    try:
        _write(record)
    except IntegrityError:
        Palace.objects.get(pk=palace.pk)
        raise
    # Not before it is committed: until then a purge that runs meanwhile does not see it.
    _take_out_purged(palace, recollection, told.packed.on_record)


def _write(record: Mapping[str, Any]) -> None:
    """In one statement: each more would be another wait for the server.

    Nobody waits for the disk, which takes longer than all the rest of the record. A power cut
    within the next second may cost it, and then also whatever refers to it. A caller's own
    transaction is left alone.
    """
    columns, values = ", ".join(record), ", ".join(f"%({name})s" for name in record)
    statement = f"INSERT INTO palace_recollectiontrace ({columns}) SELECT {values}"
    within = connection.in_atomic_block
    with transaction.atomic() if within else nullcontext(), connection.cursor() as cursor:
        cursor.execute(statement if within else f"{statement} WHERE {_WITHOUT_WAITING}", record)


def read_as(query: Query) -> dict[str, Any]:
    """How the question was understood; what it says nothing of is left out."""
    time, intent = query.time, query.intent
    read = {
        "terms": query.terms[:READ],
        "names": intent.names[:READ],
        "quoted": intent.quoted[:READ],
        "asks": [
            field.name.removeprefix("asks_")
            for field in fields(intent)
            if getattr(intent, field.name) is True
        ],
        "periods": [
            {"text": p.text, "start": p.start.isoformat(), "end": p.end.isoformat()}
            for p in time.periods[:READ]
        ],
        "when": [name for name in ("recent", "first", "last") if getattr(time, name)],
        "as_of": query.as_of.isoformat() if query.as_of else None,
        "by_meaning": query.vector is not None,
    }
    return {name: value for name, value in read.items() if value}


def _take_out_purged(palace: Palace, recollection: Recollection, context: str) -> None:
    """A purge takes its words out of the traces there are; what it met too early, we take out."""
    carried = [each.line for each in recollection.carried]
    stretches = [line for line in carried if isinstance(line, Stretch)]
    hits: list[Hit | Stretch] = [*recollection.hits, *stretches]
    known = [*recollection.facts, *(line for line in carried if isinstance(line, KnownFact))]
    cited = {one.drawer: one.pointer for one in known if one.pointer}
    wanted = [*(hit.drawer.uuid for hit in hits), *cited]
    rows = fetch_rows(
        "SELECT uuid FROM palace_drawer WHERE palace_id = %s AND uuid = ANY(%s::uuid[])",
        [palace.pk, wanted],
    )
    present = {uuid for (uuid,) in rows}
    gone = [hit for hit in hits if hit.drawer.uuid not in present]
    unfounded = [pointer for uuid, pointer in cited.items() if uuid not in present]
    if gone or unfounded:
        trace = RecollectionTrace.objects.filter(palace=palace, uuid=recollection.uuid)
        trace.update(context=without(context, gone, unfounded))


def _hit(place: int, hit: Hit, told: Composed) -> dict[str, Any]:
    traced: dict[str, Any] = {
        "drawer": str(hit.drawer.uuid),
        "pointer": str(hit.pointer),
        "score": round(hit.score, 4),
        "signals": _rounded(hit.signals),
        "passage": list(hit.passage),
    }
    if hit.place_before is not None:
        traced["place_before"] = hit.place_before
    if not hit.tells:
        traced["cut"] = TELLS_NOTHING
    elif place in told.packed.left_out:
        traced["cut"] = NO_ROOM
    elif place in told.held:
        traced["cut"] = SHOWN
    if place in told.packed.shortened:
        traced["shortened"] = True
    return traced


@dataclass(frozen=True, slots=True)
class Cut:
    """Candidates that are no hits: where they are, and at which place by their score, from 1."""

    why: str
    candidates: Sequence[int]
    places: Sequence[int | None]


def _facts(known: Sequence[KnownFact], told: Composed) -> Iterator[dict[str, Any]]:
    """What came into the block, and what was there already."""
    for place, one in enumerate(known):
        if place in told.packed.facts or place in told.held_facts - {*told.packed.facts_left_out}:
            yield {**_fact(one), **({"cut": SHOWN} if place in told.held_facts else {})}


def _fact(known: KnownFact) -> dict[str, Any]:
    """Without its words, which are the fact's own to keep or to lose."""
    return {
        "memory": str(known.memory),
        "drawer": str(known.drawer) if known.drawer else None,
        "pointer": str(known.pointer) if known.pointer else None,
        "score": round(known.score, 4),
    }


def _carried(each: Carried) -> dict[str, Any]:
    memory = {"memory": str(each.line.memory)} if isinstance(each.line, KnownFact) else {}
    return {
        "item": each.entry.item,
        "turn": each.entry.turn,
        "drawer": str(each.drawer) if each.drawer else None,
        "pointer": str(each.line.pointer) if each.line.pointer else None,
        **memory,
    }


def _cut(scored: Scored, recollection: Recollection) -> list[Cut]:
    """By why they were cut, in the order in which they are told of."""
    hits = recollection.hits
    taken = {hit.drawer.pk for hit in hits}
    keys = scored.candidates.drawers[scored.order]
    others = np.flatnonzero(~np.isin(keys, np.array(list(taken), dtype=np.int64)))
    reranked = any(hit.place_before is not None for hit in hits)
    put_lower = int(np.searchsorted(others, len(hits))) if reranked else 0
    order = np.array(scored.order, dtype=np.int64)[others].tolist()
    places = (others + 1).tolist()
    too_far = scored.too_far
    if recollection.unasked:  # What was said last may be too far from what it opens with.
        too_far = [place for place in too_far if scored.candidates.drawers[place] not in taken]
    return [
        Cut(KNOWN, scored.left_out, [None] * len(scored.left_out)),
        Cut(PUT_LOWER, order[:put_lower], places[:put_lower]),
        Cut(RANKED_LOWER, order[put_lower:], places[put_lower:]),
        Cut(TOO_FAR, too_far, [None] * len(too_far)),
    ]


def _candidates(scored: Scored, cut: Sequence[Cut]) -> dict[str, Any]:
    """The best of those that are no hits, as `RecollectionTrace.candidates` says."""
    room = {KNOWN: TRACED_KNOWN, TOO_FAR: TRACED_TOO_FAR}
    kept = [
        (which, place, each.why)
        for each in cut
        for which, place in islice(
            zip(each.candidates, each.places, strict=True), room.get(each.why, TRACED)
        )
    ][:TRACED]
    which = [which for which, _place, _why in kept]
    keys = scored.candidates.drawers[which].tolist()
    scores = scored.scores[which].astype(float).round(4).tolist()
    signals, shares = _signals(scored, which)
    rows = [
        [key, score, why, place, *row]
        for (_which, place, why), key, score, row in zip(kept, keys, scores, shares, strict=True)
    ]
    return {"signals": signals, "rows": rows}


def _signals(scored: Scored, which: list[int]) -> tuple[list[str], list[list[float]]]:
    """The names, and of each of these candidates the shares, as `scored.signals` has them."""
    columns: dict[str, Any] = {}
    for name, shares in scored.shares.items():
        signal = name.partition(".")[0]
        columns[signal] = columns.get(signal, 0.0) + shares[which].astype(float)
    if not columns:
        return [], [[] for _ in which]
    return list(columns), np.column_stack(list(columns.values())).round(4).tolist()


def _figures(
    scored: Scored,
    hits: Sequence[Hit],
    told: Composed,
    cut: Sequence[Cut],
) -> dict[str, Any]:
    return {
        "looked_at": len(scored.candidates),
        "cut": {each.why: len(each.candidates) for each in cut if each.candidates},
        "given": told.given,
        "carried": len(told.carried),
        "tokens": told.packed.tokens,
        "budget_tokens": told.packed.budget,
        "floor": _floor(scored.relevance),
    }


def _floor(relevance: Relevance) -> dict[str, Any]:
    """How close the palace came to the question, and how close it had to come."""
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


def _rounded(signals: Mapping[str, float]) -> dict[str, float]:
    return {name: round(share, 4) for name, share in signals.items()}
