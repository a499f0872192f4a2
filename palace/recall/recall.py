"""Recall: the one way anything is found, for chat, pages, programs and benchmarks alike."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.utils import timezone

from palace.aaak import Pointer
from palace.indexing.spaces import active_space
from palace.models import Drawer, EmbeddingSpace, Palace, Passage, RecollectionTrace
from palace.recall.candidates import Candidates, find_candidates
from palace.recall.fusion import fuse, ranking, total
from palace.recall.keyword import Words, by_words
from palace.recall.packing import pack
from palace.recall.query import Query, read_query
from palace.recall.recipes import Recipe, recipe_named
from palace.recall.relevance import relevant
from palace.recall.semantic import Ids, Meaning, Scores, by_meaning
from palace.recall.signals import features
from settings_app.models import settings_of

# How many candidates a trace keeps.
TRACED = 50


@dataclass(frozen=True, slots=True)
class Hit:
    """A drawer that was found.

    Attributes:
        score: In weighted standard deviations; higher is better, compares within one recall only.
        signals: The share of each signal in the score; they add up to it.
        passage: Start and end of the stretch that is closest to the question.
    """

    drawer: Drawer
    pointer: Pointer
    score: float
    signals: Mapping[str, float]
    passage: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a recall brought back.

    Attributes:
        uuid: Also of its stored trace.
        hits: Best first.
        context: The `<memory_context>` block of those hits that fit the budget; may be empty.
        notes: What was degraded or left out, in sentences.
    """

    uuid: uuid.UUID
    query: str
    hits: tuple[Hit, ...]
    context: str
    context_tokens: int
    notes: tuple[str, ...]
    duration_ms: float


@dataclass(frozen=True, slots=True)
class _Scored:
    """Candidates in the order of their score, with why the last ones were cut."""

    candidates: Candidates
    shares: Mapping[str, Scores]
    scores: Scores
    order: list[int]
    too_far: list[int]
    left_out: list[int]


def recall(
    palace: Palace,
    query: str,
    *,
    top_k: int | None = None,
    now: datetime | None = None,
    as_of: datetime | None = None,
    recipe: str = "default",
    budget_tokens: int | None = None,
    leave_out: Collection[int] = (),
) -> Recollection:
    """Find the drawers that answer `query` best, and say why.

    Args:
        top_k: At most this many hits, from 1; the owner's own choice unless given.
        now: The moment "yesterday" and the like refer to; the present unless given.
        as_of: Leave out what was said later.
        budget_tokens: Length of the context block; without one it holds all hits.
        leave_out: Keys of drawers that whoever asks has before them anyway.

    Raises:
        EmptyQuery: the query is blank.
        UnknownRecipe: there is none of that name.
    """
    started = time.perf_counter()
    chosen = recipe_named(recipe)
    space, question, meaning = _understand(palace, chosen, query, now or timezone.now(), as_of)
    words = by_words(palace, question.terms)
    if top_k is None:
        top_k = settings_of(palace.owner_id).top_k
    scored = _score(
        question,
        chosen,
        find_candidates(palace, question, meaning, words),
        meaning,
        words,
        np.array(list(leave_out), dtype=np.int64),
    )
    hits = _hits(palace, space, scored, meaning, scored.order[: max(top_k, 1)])
    packed = pack(hits, budget_tokens)
    notes = [question.note] if question.note else []
    if packed.left_out:
        notes.append(f"{len(packed.left_out)} of {len(hits)} did not fit the budget of tokens.")
    recollection = Recollection(
        uuid=uuid.uuid4(),
        query=question.text,
        hits=hits,
        context=packed.context,
        context_tokens=packed.tokens,
        notes=tuple(notes),
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    _keep_trace(palace, question, chosen, scored, recollection)
    return recollection


def _understand(
    palace: Palace, recipe: Recipe, text: str, now: datetime, as_of: datetime | None
) -> tuple[EmbeddingSpace, Query, Meaning]:
    """Read the question and compare it by meaning, both in the same space.

    While models are switched, the passages of the space just looked up may be gone already.
    """
    while True:
        space = active_space()
        question = read_query(
            palace, space, text, now=now, as_of=as_of, by_meaning=recipe.by_meaning
        )
        meaning = by_meaning(palace, space, question.vector)
        if len(meaning.drawers) or question.vector is None or active_space() == space:
            return space, question, meaning


def _score(
    query: Query,
    recipe: Recipe,
    candidates: Candidates,
    meaning: Meaning,
    words: Words,
    leave_out: Ids,
) -> _Scored:
    values = features(query, candidates, meaning, words)
    shares = fuse(values, recipe.weights)
    scores = total(shares, len(candidates))
    suiting, wishes = values["time.said"], values["preference.stated"]
    taken = relevant(candidates, suiting, wishes, meaning, words)
    order = ranking(scores, candidates.drawers)
    known = np.isin(candidates.drawers, leave_out)[order]
    order, left_out = order[~known], order[known]
    return _Scored(
        candidates,
        shares,
        scores,
        order=order[taken[order]].tolist(),
        too_far=order[~taken[order]].tolist(),
        left_out=left_out.tolist(),
    )


def _hits(
    palace: Palace, space: EmbeddingSpace, scored: _Scored, meaning: Meaning, places: list[int]
) -> tuple[Hit, ...]:
    keys = scored.candidates.drawers[places]
    drawers = Drawer.objects.filter(palace=palace).with_place().in_bulk(keys.tolist())
    ordinals = meaning.at(keys, meaning.best_passage)
    spans = {
        (drawer, ordinal): (start, end)
        for drawer, ordinal, start, end in Passage.objects.filter(
            palace=palace, space=space, drawer__in=keys.tolist()
        ).values_list("drawer_id", "ordinal", "start", "end")
    }
    hits = []
    for place, key, ordinal in zip(places, keys.tolist(), ordinals, strict=True):
        drawer = drawers.get(key)
        if drawer is None:  # Purged since it was scored.
            continue
        whole = (0, len(drawer.text))
        hits.append(
            Hit(
                drawer=drawer,
                pointer=drawer.pointer,
                score=float(scored.scores[place]),
                signals=_signals(scored.shares, place),
                passage=spans.get((key, int(ordinal)), whole),
            )
        )
    return tuple(hits)


def _signals(shares: Mapping[str, Scores], place: int) -> dict[str, float]:
    """Shares of one candidate, features of one signal added up: `exchange.words` is `exchange`."""
    signals: dict[str, float] = {}
    for name, values in shares.items():
        signal = name.partition(".")[0]
        signals[signal] = signals.get(signal, 0.0) + float(values[place])
    return signals


def _keep_trace(
    palace: Palace, query: Query, recipe: Recipe, scored: _Scored, recollection: Recollection
) -> None:
    RecollectionTrace.objects.create(
        uuid=recollection.uuid,
        palace=palace,
        query=recollection.query,
        recipe=recipe.name,
        now=query.now,
        hits=[
            {
                "drawer": str(hit.drawer.uuid),
                "pointer": str(hit.pointer),
                "score": round(hit.score, 4),
                "signals": {name: round(share, 4) for name, share in hit.signals.items()},
            }
            for hit in recollection.hits
        ],
        candidates=_traced(scored, len(recollection.hits)),
        context=recollection.context,
        notes=list(recollection.notes),
        duration_ms=recollection.duration_ms,
    )


def _traced(scored: _Scored, taken: int) -> list[dict[str, Any]]:
    """The best candidates after the hits, with why they were cut."""
    cut = [(place, "ranked lower") for place in scored.order[taken:]]
    cut += [(place, "already in the conversation") for place in scored.left_out]
    cut += [(place, "too far from the question") for place in scored.too_far]
    return [
        {
            "drawer": int(scored.candidates.drawers[place]),
            "score": round(float(scored.scores[place]), 4),
            "signals": {n: round(s, 4) for n, s in _signals(scored.shares, place).items()},
            "cut": why,
        }
        for place, why in cut[:TRACED]
    ]
