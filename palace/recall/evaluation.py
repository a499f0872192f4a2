"""Evaluation: the owner's questions with the drawers expected, tried and scored.

A trial runs recall as of the question's time, without a trace. The standing of one drawer for a
question is its rank and score, or why it could not be a hit.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import numpy as np
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from language.errors import PalaceError
from palace.models import (
    Drawer,
    ExpectedDrawer,
    Palace,
    RecallCase,
    RecollectionTrace,
    opens_palace,
)
from palace.recall.recipes import RECIPES, Recipe
from palace.recall.request import Hit, RecallRequest, read_request_context
from palace.recall.retrieval import recall, search, search_together
from palace.recall.scoring import Scored
from palace.recall.trace import TOO_FAR
from settings_app.models import settings_of
from settings_app.time_zone import zone_named

QUESTION_GONE = (
    "The question was deleted for good with the drawer it came from; there is nothing left to try."
)
DRAWER_GONE = "This drawer was deleted for good."
# Hits per trial; a drawer below this rank counts as not found.
DEPTH = 20
Key = TypeVar("Key", bound=Hashable)
# The filters of the recall do not permit the drawer, or it is not searchable yet.
NOT_CHOSEN_FROM = "left out by the filters"
NOT_SEARCHABLE = "not mined yet"


class NotACase(PalaceError):
    """A case could not be saved; the message says why, and what to do."""

    code = "not_a_case"


def owners_time(palace: Palace, moment: datetime) -> datetime:
    """`moment` in the owner's time zone, which "yesterday" refers to."""
    return moment.astimezone(zone_named(settings_of(palace.owner_id).time_zone))


def case_of(trace: RecollectionTrace) -> RecallCase | None:
    """The saved case of the trace's question, if any."""
    day = owners_time(trace.palace, trace.now).date()
    return RecallCase.objects.within(trace.palace).filter(query=trace.query, day=day).first()


@transaction.atomic
def expect(trace: RecollectionTrace, drawer: Drawer) -> RecallCase:
    """Save that `drawer` is expected. Idempotent: a question has one case per day.

    Raises:
        NotACase: the question or the drawer was deleted, or the drawer is in the trash.
    """
    palace = trace.palace
    palace.lock()  # Blocks purges.
    trace.refresh_from_db()
    if not trace.query:
        raise NotACase(QUESTION_GONE)
    expected = Drawer.objects.within(palace).with_place().filter(pk=drawer.pk).first()
    if expected is None:
        raise NotACase(DRAWER_GONE)
    if expected.trashed_at:
        raise NotACase(
            f"{expected.pointer} is in the trash, where nothing can find it; restore it first."
        )
    case, _ = RecallCase.objects.get_or_create(
        palace=palace,
        query=trace.query,
        day=owners_time(palace, trace.now).date(),
        defaults={"now": trace.now},
    )
    _, is_new = ExpectedDrawer.objects.get_or_create(palace=palace, case=case, drawer=expected)
    if is_new and case.tried_at:  # The last trial did not expect this drawer.
        case.tried_at = None
        case.save(update_fields=["tried_at"])
    return case


@transaction.atomic
def take_back(case: RecallCase, drawer: Drawer) -> bool:
    """Remove an expected drawer; True if the case was deleted with its last one."""
    case.palace.lock()
    expected = ExpectedDrawer.objects.filter(palace=case.palace_id, case=case)
    expected.filter(drawer=drawer).delete()
    if expected.exists():
        return False
    RecallCase.objects.within(case.palace).filter(pk=case.pk).delete()
    return True


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of recall for a case.

    Attributes:
        found: Keys of the drawers found, best first, at most `DEPTH`.
        wanted: The expected drawers that are not in the trash.
        trashed: Number of expected drawers in the trash, which are not scored.
        notes: Sentences on what was degraded.
    """

    case: RecallCase
    found: tuple[int, ...]
    wanted: tuple[Drawer, ...]
    trashed: int
    notes: tuple[str, ...] = ()

    @property
    def is_scored(self) -> bool:
        """Whether any expected drawer is outside the trash."""
        return bool(self.wanted)

    def place(self, drawer: Drawer) -> int | None:
        """The drawer's rank from 1; None if not found."""
        return self.found.index(drawer.pk) + 1 if drawer.pk in self.found else None

    @property
    def missed(self) -> list[Drawer]:
        """Expected drawers that are not among the first five."""
        return [drawer for drawer in self.wanted if drawer.pk not in self.found[:5]]


def try_case(case: RecallCase, recipe: str = "default") -> Trial:
    """Recall the case's question as of its time. A model reranks only if the recipe does."""
    expected = ExpectedDrawer.objects.filter(palace=case.palace_id, case=case)
    drawers = Drawer.objects.within(case.palace).with_place()
    present = list(drawers.filter(pk__in=expected.values("drawer")).order_by("pk"))
    wanted = tuple(drawer for drawer in present if drawer.trashed_at is None)
    trashed = len(present) - len(wanted)
    if not wanted:
        return Trial(case, (), (), trashed)
    found = recall(
        case.palace,
        RecallRequest(
            case.query,
            top_k=DEPTH,
            now=owners_time(case.palace, case.now),
            recipe=recipe,
            repeats=_asked_itself(case, wanted),
            rerank=None if needs_model(RECIPES[recipe]) else False,
            store_trace=False,
        ),
    )
    keys = tuple(hit.drawer.pk for hit in found.hits)
    return Trial(case, keys, wanted, trashed, found.notes)


def _asked_itself(case: RecallCase, wanted: Sequence[Drawer]) -> list[int]:
    """Drawers with the question itself, which chat has filed, and which would rank first."""
    same = Drawer.objects.within(case.palace).kept().filter(text=case.query)
    keys = same.exclude(pk__in=[drawer.pk for drawer in wanted]).values_list("pk", flat=True)
    return list(keys)


def needs_model(recipe: Recipe) -> bool:
    return bool(getattr(recipe, "rerank", False))


def without_model() -> list[str]:
    """Names of the recipes that call no paid model."""
    return [name for name, recipe in RECIPES.items() if not needs_model(recipe)]


def try_now(palace: Palace, *, at_most: int, seconds: float) -> int:
    """Try cases, least recently tried first, and save each drawer's rank; returns how many."""
    deadline = time.monotonic() + seconds
    cases: QuerySet[RecallCase] = RecallCase.objects.within(palace).select_related("palace")
    tried = 0
    for case in cases.order_by(F("tried_at").asc(nulls_first=True), "pk")[:at_most]:
        if tried and time.monotonic() > deadline:
            break
        _keep(try_case(case))
        tried += 1
    return tried


@transaction.atomic
def _keep(trial: Trial) -> None:
    """Save the ranks; rows deleted in the meantime are not created again."""
    case = trial.case
    RecallCase.objects.within(case.palace).filter(pk=case.pk).update(tried_at=timezone.now())
    expected = ExpectedDrawer.objects.filter(palace=case.palace_id, case=case)
    expected.update(place=None)
    for drawer in trial.wanted:
        expected.filter(drawer=drawer).update(place=trial.place(drawer))


def failures(trials: Sequence[Trial]) -> list[Trial]:
    """Trials with an expected drawer that is not among the first five."""
    return [trial for trial in trials if trial.is_scored and trial.missed]


def last_scores(palace: Palace) -> tuple[int, dict[str, float]]:
    """Number of cases scored at their last trial, and their mean measures."""
    tried = RecallCase.objects.within(palace).exclude(tried_at=None)
    kept = Drawer.objects.within(palace).kept()
    expected = ExpectedDrawer.objects.filter(palace=palace, case__in=tried, drawer__in=kept)
    places: defaultdict[int, dict[int, int | None]] = defaultdict(dict)
    for case, drawer, place in expected.values_list("case_id", "drawer_id", "place"):
        places[case][drawer] = place
    return len(places), _means((_found(came), list(came)) for came in places.values())


def _found(places: Mapping[int, int | None]) -> list[int]:
    """The ranking with these drawers at their ranks, and 0 elsewhere."""
    at = {place: drawer for drawer, place in places.items()}
    return [at.get(place, 0) for place in range(1, DEPTH + 1)]


def scores(trials: Iterable[Trial]) -> dict[str, float]:
    """The mean of each measure over the scored trials; empty if there are none."""
    return _means(
        (trial.found, [drawer.pk for drawer in trial.wanted]) for trial in trials if trial.is_scored
    )


def _means(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> dict[str, float]:
    counted = list(pairs)
    if not counted:
        return {}
    return {
        name: sum(measure(found, wanted) for found, wanted in counted) / len(counted)
        for name, measure in MEASURES.items()
    }


def recall_at(found: Sequence[Key], wanted: Collection[Key], k: int) -> float:
    """Share of `wanted` among the first `k` of `found`, 0 to 1; `wanted` is not empty."""
    return len(set(found[:k]) & set(wanted)) / len(set(wanted))


def any_at(found: Sequence[Key], wanted: Collection[Key], k: int) -> float:
    """1 if any of `wanted` is among the first `k`, else 0."""
    return float(bool(set(found[:k]) & set(wanted)))


def all_at(found: Sequence[Key], wanted: Collection[Key], k: int) -> float:
    """1 if all of `wanted` are among the first `k`, else 0."""
    return float(set(wanted) <= set(found[:k]))


def reciprocal_rank(found: Sequence[Key], wanted: Collection[Key]) -> float:
    """1 if the first key found is wanted, 1/2 if only the second is, and so on; 0 if none is."""
    places = (place for place, key in enumerate(found, start=1) if key in set(wanted))
    return 1 / next(places, float("inf"))


MEASURES = {
    "any@5": lambda found, wanted: any_at(found, wanted, 5),
    "all@5": lambda found, wanted: all_at(found, wanted, 5),
    "recall@10": lambda found, wanted: recall_at(found, wanted, 10),
    "mrr": reciprocal_rank,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """
    Attributes:
        place: Its rank, from 1, by score or, with a rewritten question, among the hits of all its
            questions; None for one that could not be a hit.
        why: Why it could not be a hit: `TOO_FAR`, `NOT_CHOSEN_FROM` or `NOT_SEARCHABLE`; else
            empty.
        score: Of this drawer; 0 where it was not scored, and `signals` is empty then.
        hits: What the recall finds, best first.
    """

    place: int | None
    why: str
    score: float
    signals: Mapping[str, float]
    hits: tuple[Hit, ...]

    @property
    def is_hit(self) -> bool:
        return self.place is not None and self.place <= len(self.hits)


@opens_palace
def standing_of(
    palace: Palace, request: RecallRequest, drawer: Drawer, rewritten: Sequence[str] = ()
) -> Standing:
    """Score a drawer for the request, however far it is from the question.

    No model is asked: scores are compared, and those of one recall only compare with each other.

    Args:
        rewritten: What a model made of the question, if it did.

    Raises:
        EmptyQuery: the query is blank.
        UnknownRecipe: no recipe has that name.
    """
    request = replace(request, judge=drawer.pk, rerank=False, store_trace=False)
    context = read_request_context(palace, request)
    if not rewritten:
        found = search(palace, request, context)
        return _by_score(found.scored, found.hits, drawer)
    found, together = search_together(palace, request, context, rewritten)
    hits = together[: context.limit]
    for place, hit in enumerate(together, start=1):
        if hit.drawer.pk == drawer.pk:
            return Standing(place, "", hit.score, hit.signals, hits)
    # What is so far down for each of the questions comes after all of these.
    own = _by_score(found.scored, hits, drawer)
    return replace(own, place=own.place and max(own.place, len(together) + 1))


def _by_score(scored: Scored, hits: tuple[Hit, ...], drawer: Drawer) -> Standing:
    at = next(iter(np.flatnonzero(scored.candidates.drawers == drawer.pk).tolist()), None)
    if at is None:
        why = NOT_SEARCHABLE if drawer.mined_at is None else NOT_CHOSEN_FROM
        return Standing(None, why, 0.0, {}, hits)
    found = np.flatnonzero(scored.order == at)
    place = int(found[0]) + 1 if len(found) else None
    why = "" if place else TOO_FAR
    return Standing(place, why, float(scored.scores[at]), scored.signals([at])[0], hits)
