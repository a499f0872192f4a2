"""A run: ingest conversations through mining, ask questions through recall."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from tqdm import tqdm

import llm.embedding
import palace as palace_package
from bench.datasets.base import Case, Question
from bench.logs import BadRun, Log
from language.storable import storable_id
from palace.models import Drawer, Palace
from palace.pipeline import mine_many
from palace.recall import Hit, RecallRequest, recall
from palace.recall.recipes import recipe_named
from palace.storage import fill_missing_vectors
from settings_app.models import MemorySettings

# Sessions take the place of their best turn, so more turns than the deepest cut are needed.
TOP_K = 100


def take_in(case: Case, log: Log) -> Palace:
    """File and mine what earlier runs have not; record the time.

    Raises:
        EmbedderUnavailable: what lacks a vector could not be found; doing it again goes on.
    """
    palace = palace_of(case)
    _choose_model(palace, MemorySettings.NO_MODEL)
    started = time.perf_counter()
    here = _taken_in(palace)
    new = [each for each in case.transcripts if storable_id(each.external_id) not in here]
    mine_many(palace, tqdm(new, desc=f"{case.id} in", leave=False, disable=None))
    # What an embedder at fault has left; elsewhere a task sees to it.
    while fill_missing_vectors():
        pass
    if new or not _is_logged(palace, case, log):
        log.append(
            {
                "case": case.id,
                "palace": str(palace.uuid),
                "messages": Drawer.objects.within(palace).count(),
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
    return palace


def palace_taken_in(case: Case, log: Log, how: str) -> Palace:
    """The palace of a completely ingested case.

    Args:
        how: The command that ingests it.

    Raises:
        BadRun: it is not ingested; says what to do.
    """
    if not is_taken_in(case, log):
        raise BadRun(f"{case.id} is not taken in, or only in part; run `{how}` first.")
    return palace_of(case)


def ask(
    case: Case, palace: Palace, recipe: str, asked: Collection[str]
) -> Iterator[dict[str, Any]]:
    """A log line for each question that is not in `asked`."""
    questions = [question for question in case.questions if question.id not in asked]
    prepare(palace, recipe)
    for question in tqdm(questions, desc=f"{case.id} ?", leave=False, disable=None):
        started = time.perf_counter()
        found = recall(
            palace,
            RecallRequest(
                question.text, top_k=TOP_K, now=question.now, recipe=recipe, rerank=reranks(recipe)
            ),
        )
        latency_ms = (time.perf_counter() - started) * 1000
        yield {
            **described(case, question),
            "hits": [_hit(hit) for hit in found.hits],
            "latency_ms": round(latency_ms, 2),
            "recollection": str(found.uuid),
            "notes": list(found.notes),
        }


def reranks(recipe: str) -> bool:
    """Figures must not depend on an account, nor on its model, unless the recipe asks for one."""
    return bool(getattr(recipe_named(recipe), "rerank", False))


def prepare(palace: Palace, recipe: str) -> None:
    """Allow recall to use the operator's model, if the recipe reranks."""
    here = MemorySettings.OF_THIS_SERVER if reranks(recipe) else MemorySettings.NO_MODEL
    _choose_model(palace, here)


def _choose_model(palace: Palace, provider: str) -> None:
    """Ingest conversations with the local rules, ignoring the operator's model."""
    MemorySettings.objects.update_or_create(
        owner_id=palace.owner_id, defaults={"provider": provider}
    )


def described(case: Case, question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "case": case.id,
        "type": question.type,
        "question": question.text,
        "now": question.now.isoformat() if question.now else None,
        "gold_turns": sorted(question.gold_turns),
        "gold_sessions": sorted(question.gold_sessions),
    }


def _hit(hit: Hit) -> dict[str, Any]:
    drawer = hit.drawer
    return {
        "session": drawer.conversation,
        "turn": f"{drawer.conversation}/{drawer.external_id}",
        "score": round(hit.score, 4),
        "signals": {name: round(share, 4) for name, share in hit.signals.items()},
    }


def palace_of(case: Case) -> Palace:
    """A user for each case."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    palace, _ = Palace.objects.get_or_create(owner=owner, subject=storable_id(case.id))
    return palace


def _taken_in(palace: Palace) -> set[str]:
    """The conversations that are filed and mined: filing is all or nothing."""
    drawers = Drawer.objects.within(palace)
    unmined = drawers.unmined().values("conversation")
    mined = drawers.exclude(conversation__in=unmined)
    return set(mined.values_list("conversation", flat=True).distinct())


def is_taken_in(case: Case, log: Log) -> bool:
    """Whether a case is completely ingested."""
    return _is_logged(palace_of(case), case, log)


def _is_logged(palace: Palace, case: Case, log: Log) -> bool:
    wanted = (case.id, str(palace.uuid))
    return any((line["case"], line["palace"]) == wanted for line in log.lines())


def code_of_recall() -> str:
    """Of the code and word lists that decide what is found: half a log may not be another's."""
    memory, embedding = Path(palace_package.__path__[0]), Path(llm.embedding.__path__[0])
    parts = [memory / part for part in ("indexing", "mining", "models", "recall")]
    digest = hashlib.sha256()
    for folder in (*parts, embedding):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(folder)}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
