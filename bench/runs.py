"""A run: conversations in through mining, questions through recall, scores out."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from tqdm import tqdm

from bench.datasets.base import Case, Question
from bench.metrics import all_at, any_at, interval, mean, percentile, recall_at
from palace.mining.mine import mine_many
from palace.models import Drawer, Palace
from palace.recall.recall import recall
from palace.storable import storable_id

DEPTHS = (5, 10, 20)
# Sessions take the place of their best turn, so more turns than the deepest cut are needed.
TOP_K = 100


@dataclass(slots=True)
class Run:
    """
    Attributes:
        scores: Per question type, per metric, one value a question.
        latencies_ms: Of each recall, the trace included.
    """

    recipe: str
    scores: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    latencies_ms: list[float] = field(default_factory=list)
    messages: int = 0
    ingest_s: float = 0.0
    questions: int = 0

    def ingest(self, case: Case) -> None:
        """Take in what an earlier run, kept or killed, has not taken in already."""
        palace = palace_of(case)
        started = time.perf_counter()
        here = _taken_in(palace)
        new = [each for each in case.transcripts if storable_id(each.external_id) not in here]
        self.messages += mine_many(
            palace, tqdm(new, desc=f"{case.id} in", leave=False, disable=None)
        )
        self.ingest_s += time.perf_counter() - started

    def ask(self, case: Case) -> None:
        palace = palace_of(case)
        for question in tqdm(case.questions, desc=f"{case.id} ?", leave=False, disable=None):
            started = time.perf_counter()
            found = recall(
                palace,
                question.text,
                top_k=TOP_K,
                now=question.now,
                recipe=self.recipe,
                rerank=False,  # Figures must not depend on an account, nor on its model.
            )
            self.latencies_ms.append((time.perf_counter() - started) * 1000)
            self._score(question, [hit.drawer for hit in found.hits])

    def _score(self, question: Question, drawers: Sequence[Drawer]) -> None:
        turns = [f"{drawer.conversation}/{drawer.external_id}" for drawer in drawers]
        sessions = list(dict.fromkeys(drawer.conversation for drawer in drawers))
        self.questions += 1
        for name, value in _metrics(question, turns, sessions):
            self.scores[question.type][name].append(value)

    def report(self) -> dict[str, Any]:
        overall: dict[str, list[float]] = defaultdict(list)
        for by_metric in self.scores.values():
            for name, values in by_metric.items():
                overall[name] += values
        return {
            "recipe": self.recipe,
            "questions": self.questions,
            "metrics": {
                "overall": _summary(overall),
                "by_type": {kind: _summary(scores) for kind, scores in sorted(self.scores.items())},
            },
            "latency_ms": {
                "p50": round(percentile(self.latencies_ms, 0.5), 1),
                "p95": round(percentile(self.latencies_ms, 0.95), 1),
            },
            "ingest": {"messages": self.messages, "seconds": round(self.ingest_s, 1)},
        }


def _taken_in(palace: Palace) -> set[str]:
    """The conversations that are filed and mined: filing is all or nothing."""
    drawers = Drawer.objects.within(palace)
    unmined = drawers.unmined().values("conversation")
    mined = drawers.exclude(conversation__in=unmined)
    return set(mined.values_list("conversation", flat=True).distinct())


def palace_of(case: Case) -> Palace:
    """Each case is a person of its own."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    palace, _ = Palace.objects.get_or_create(owner=owner, subject=case.id)
    return palace


def _metrics(
    question: Question, turns: Sequence[str], sessions: Sequence[str]
) -> Iterator[tuple[str, float]]:
    for k in DEPTHS:
        yield f"session_recall_any@{k}", any_at(sessions, question.gold_sessions, k)
        yield f"session_recall_all@{k}", all_at(sessions, question.gold_sessions, k)
        yield f"session_recall@{k}", recall_at(sessions, question.gold_sessions, k)
        if question.gold_turns:
            yield f"turn_recall@{k}", recall_at(turns, question.gold_turns, k)
            yield f"turn_recall_any@{k}", any_at(turns, question.gold_turns, k)


def _summary(scores: dict[str, list[float]]) -> dict[str, Any]:
    return {
        name: {
            "value": round(mean(values), 4),
            "ci": [round(bound, 4) for bound in interval(values)],
        }
        for name, values in scores.items()
    }
