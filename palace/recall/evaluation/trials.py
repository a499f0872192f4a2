"""Trials: run recall on the owner's cases, without a trace, and score it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from palace.models import Drawer, ExpectedDrawer, Palace, RecallCase
from palace.recall.evaluation.cases import owners_time
from palace.recall.evaluation.measures import all_at, any_at, recall_at, reciprocal_rank
from palace.recall.recall import recall
from palace.recall.recipes import RECIPES, Recipe
from palace.recall.request import RecallRequest

# Hits per trial; a drawer below this rank counts as not found.
DEPTH = 20

MEASURES = {
    "any@5": lambda found, wanted: any_at(found, wanted, 5),
    "all@5": lambda found, wanted: all_at(found, wanted, 5),
    "recall@10": lambda found, wanted: recall_at(found, wanted, 10),
    "mrr": reciprocal_rank,
}


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
    held = list(drawers.filter(pk__in=expected.values("drawer")).order_by("pk"))
    wanted = tuple(drawer for drawer in held if drawer.trashed_at is None)
    trashed = len(held) - len(wanted)
    if not wanted:
        return Trial(case, (), (), trashed)
    found = recall(
        case.palace,
        RecallRequest(
            case.query,
            top_k=DEPTH,
            now=owners_time(case.palace, case.now),
            recipe=recipe,
            exclude_ids=_asked_itself(case, wanted),
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


def scores(trials: Iterable[Trial]) -> dict[str, float]:
    """The mean of each measure over the scored trials; empty if there are none."""
    return _means(
        (trial.found, [drawer.pk for drawer in trial.wanted]) for trial in trials if trial.is_scored
    )


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


def _means(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> dict[str, float]:
    counted = list(pairs)
    if not counted:
        return {}
    return {
        name: sum(measure(found, wanted) for found, wanted in counted) / len(counted)
        for name, measure in MEASURES.items()
    }


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
