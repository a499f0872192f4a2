"""What each stage of recall costs and gives: whole recalls with it and without."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import Any

from tqdm import tqdm

from bench.datasets.base import Case, Question
from bench.metrics import recall_at
from bench.runs import palace_of, prepare
from palace.models import Palace
from palace.recall import STAGES, RecallRequest, RecipeGiven, recall, recipe_given
from settings_app.recall_stages import MEASURED

TOP_K, BUDGET_TOKENS = 10, 1024
# A model's calls are not measured: they take as long as the model does.
_CALLS_A_MODEL = ("rewrite", "rerank")
WHOLE = "all"


def variants() -> dict[str, RecipeGiven]:
    """The whole recipe, and the recipe without each stage that can be off, by name."""
    off: dict[str, RecipeGiven] = {
        stage.name: [{"stage": stage.name, "on": False}]
        for stage in STAGES.values()
        if stage.switch and stage.name not in _CALLS_A_MODEL
    }
    return {WHOLE: [], **off}


def measure(cases: Sequence[Case]) -> dict[str, Any]:
    """By variant: turn_recall@10, the share of refused questions that have no answer, and ms of
    processor time in this process, which other programs on the machine do not change.

    All variants of a question are asked one after the other, each time another one first, so that
    what else the machine does affects them alike.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    refused: defaultdict[str, list[float]] = defaultdict(list)
    taken: defaultdict[str, list[float]] = defaultdict(list)
    recipes = variants()
    for at, (palace, question) in enumerate(_questions(cases)):
        names = list(recipes)
        names = names[at % len(names) :] + names[: at % len(names)]
        for name in names:
            ids, seconds = _asked(palace, question, recipes[name])
            taken[name].append(seconds * 1000)
            if question.gold_turns:
                found[name].append(recall_at(ids, question.gold_turns, TOP_K))
            elif question.unanswerable:
                refused[name].append(float(not ids))
    return {
        name: {
            "turn_recall@10": round(mean(found[name]), 4),
            "refused": round(mean(refused[name]), 4) if refused[name] else None,
            "ms": round(median(taken[name]), 2),
            "ms_less": round(
                median(b - a for a, b in zip(taken[name], taken[WHOLE], strict=True)), 2
            ),
            "questions": len(taken[name]),
        }
        for name in recipes
    }


def _questions(cases: Sequence[Case]) -> Iterator[tuple[Palace, Question]]:
    for case in tqdm(cases, desc="asked", unit="case", disable=None):
        palace = palace_of(case)
        prepare(palace, "default")
        if case.questions:  # What is read once, such as the index, is nobody's cost.
            _asked(palace, case.questions[0], "default")
        yield from ((palace, question) for question in case.questions)


def _asked(palace: Palace, question: Question, recipe: RecipeGiven) -> tuple[list[str], float]:
    """The messages found, as `conversation/message`, and the processor time in seconds."""
    started = time.process_time()
    hits = recall(
        palace,
        RecallRequest(
            question.text,
            top_k=TOP_K,
            now=question.now,
            recipe=recipe,
            budget_tokens=BUDGET_TOKENS,
            rerank=False,
            with_facts=True,
            store_trace=False,
        ),
    ).hits
    seconds = time.process_time() - started
    return [f"{hit.drawer.conversation}/{hit.drawer.external_id}" for hit in hits], seconds


def write(figures: dict[str, Any]) -> None:
    """Store what the settings page shows: each stage, with what it costs and gives."""
    whole = figures[WHOLE]
    default = recipe_given("default")
    rows = [
        {
            "name": stage.name,
            "help": stage.help,
            "on": not stage.switch or bool(getattr(default, stage.switch)),
            **_difference(figures.get(stage.name), whole),
        }
        for stage in STAGES.values()
    ]
    content = {"questions": whole["questions"], "ms": whole["ms"], "stages": rows}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    MEASURED.write_text(text + "\n", encoding="utf-8")


def _difference(without: dict[str, Any] | None, whole: dict[str, Any]) -> dict[str, float]:
    if without is None:
        return {}
    points = 100 * (whole["turn_recall@10"] - without["turn_recall@10"])
    return {"ms": without["ms_less"], "points": round(points, 1)}
