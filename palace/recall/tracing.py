"""Tracing: the record of a recall, for whoever asks later what was found and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palace.models import Drawer, Palace, RecollectionTrace
from palace.recall.packing import without
from palace.recall.query import Query
from palace.recall.recipes import Recipe
from palace.recall.recollection import Hit, Recollection
from palace.recall.scoring import Scored

# How many candidates a trace keeps.
TRACED = 50


def keep_trace(
    palace: Palace, query: Query, recipe: Recipe, scored: Scored, recollection: Recollection
) -> None:
    trace = RecollectionTrace.objects.create(
        uuid=recollection.uuid,
        palace=palace,
        query=recollection.query,
        recipe=recipe.name,
        now=query.now,
        hits=[_hit(hit) for hit in recollection.hits],
        candidates=_candidates(scored, {hit.drawer.pk for hit in recollection.hits}),
        context=recollection.context,
        notes=list(recollection.notes),
        duration_ms=recollection.duration_ms,
    )
    _take_out_purged(trace, recollection.hits)


def _take_out_purged(trace: RecollectionTrace, hits: Sequence[Hit]) -> None:
    """A purge takes its words out of the traces there are; what it met too early, we take out."""
    keys = [hit.drawer.pk for hit in hits]
    present = Drawer.objects.filter(palace=trace.palace_id, pk__in=keys)
    left = set(present.values_list("pk", flat=True)) if keys else set()
    gone = [hit for hit in hits if hit.drawer.pk not in left]
    if gone:
        trace.context = without(trace.context, gone)
        trace.save(update_fields=["context"])


def _hit(hit: Hit) -> dict[str, Any]:
    traced: dict[str, Any] = {
        "drawer": str(hit.drawer.uuid),
        "pointer": str(hit.pointer),
        "score": round(hit.score, 4),
        "signals": _rounded(hit.signals),
    }
    if hit.place_before is not None:
        traced["place_before"] = hit.place_before
    return traced


def _candidates(scored: Scored, taken: set[int]) -> list[dict[str, Any]]:
    """The best of the candidates that are no hits, by score, with why they were cut."""
    keys = scored.candidates.drawers
    cut = [(place, "ranked lower") for place in scored.order if int(keys[place]) not in taken]
    cut += [(place, "already in the conversation") for place in scored.left_out]
    cut += [(place, "too far from the question") for place in scored.too_far]
    return [
        {
            "drawer": int(keys[place]),
            "score": round(float(scored.scores[place]), 4),
            "signals": _rounded(scored.signals(place)),
            "cut": why,
        }
        for place, why in cut[:TRACED]
    ]


def _rounded(signals: Mapping[str, float]) -> dict[str, float]:
    return {name: round(share, 4) for name, share in signals.items()}
