"""Query: a question parsed and embedded for all signals.

An embedder places a question close to its paraphrases, but the answer uses other words, often by
another speaker at another time. So the adapter, a linear map per model, moves a question's
embedding towards that of its answer; passages stay as embedded. It is trained on questions with
known answers (`manage.py train_recall`). Rücklé et al., MultiCQA (2020), describe such adapters on
frozen embeddings.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from language.analyzer import analyze_question
from language.dates import read_time
from language.english.dates import Period, TimeIntent
from language.english.questions import Intent, asks_of_past, read_intent
from language.errors import EmptyQuery
from language.storable import normalize_query
from llm.embedding import embed
from llm.embedding.local_models import INT8_NAME, MODEL_NAME, MULTILINGUAL_NAME
from llm.errors import LLMError
from palace.models import EmbeddingSpace, Palace
from palace.storage.indexing.spaces import model_of

logger = logging.getLogger(__name__)
# What training wrote: maps of the adapter, weights of the recipes, and models of the floor.
LEARNT_FOLDER = Path(__file__).parent / "learnt"
# The local embedders that recall was trained on, each with files of its name in that folder; both
# precisions of a model share them.
MINILM, E5 = MODEL_NAME, MULTILINGUAL_NAME
_TRAINED_ON = {MINILM: MINILM, INT8_NAME: MINILM, E5: E5}
Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question.

    Attributes:
        terms: Distinct terms from the analyzer.
        readings: The other terms that a term may be stored as, in messages of another language.
        vector: Of length 1; None if the embedder is unavailable.
        adapted: The vector mapped by the trained adapter, of length 1; `vector` without one.
        note: Why there is no vector; empty if there is one.
        embedder: The one that recall was trained on and the vector is of; empty for any other.
        rewritten: What a model made of the question, if the recipe has it rewritten.
        space: The embedding space that it was read for.
        beside: By their texts, the vectors of others that were embedded in the same call.
    """

    text: str
    now: datetime
    as_of: datetime | None
    terms: tuple[str, ...]
    vector: npt.NDArray[np.float32] | None
    adapted: npt.NDArray[np.float32] | None
    time: TimeIntent
    intent: Intent
    note: str = ""
    readings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    embedder: str = ""
    rewritten: tuple[str, ...] = ()
    space: EmbeddingSpace | None = None
    beside: Mapping[str, Vector] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of question, by the names under which recipes adjust weights."""
        intent = self.intent
        kinds = {
            "names": bool(intent.names),
            "times": bool(self.time.periods),
            "advice": intent.asks_advice,
            "survey": intent.asks_survey,
            "user": intent.asks_user,
            "assistant": intent.asks_assistant,
        }
        return tuple(kind for kind, holds in kinds.items() if holds)


@dataclass(frozen=True, slots=True)
class Past:
    """A question about the past: about these periods or, if there are none, any time before now."""

    periods: tuple[Period, ...] = ()


def read_query(
    palace: Palace,
    space: EmbeddingSpace,
    text: str,
    *,
    now: datetime,
    as_of: datetime | None,
    by_meaning: bool,
    readings: Mapping[str, tuple[str, ...]] | None = None,
    beside: str = "",
) -> Query:
    """Parse a question for all signals; embed it if `by_meaning`.

    Args:
        readings: The question's terms, if already read.
        beside: Another question to embed in the same call, which takes less than one of its own.

    Raises:
        EmptyQuery: `text` is blank.
    """
    readable = normalize_query(text)
    if not readable:
        raise EmptyQuery
    vector, note, others = None, "", dict[str, Vector]()
    if by_meaning:
        texts = [readable, beside] if beside and beside != readable else [readable]
        try:
            vector, *rest = embed(
                texts, model_of(space), owner_id=palace.owner_id, is_question=True
            )
            others = dict(zip(texts[1:], rest, strict=True))
        except LLMError as error:
            note = f"Searched by words only, not by meaning: {error}"
            logger.warning(note)
    readings = analyze_question(readable) if readings is None else readings
    return Query(
        text=readable,
        now=now,
        as_of=as_of,
        terms=tuple(readings),
        vector=vector,
        adapted=None if vector is None else adapt(vector, space),
        time=read_time(readable, now),
        intent=read_intent(readable),
        note=note,
        readings=readings,
        embedder=trained_embedder(space.provider, space.model),
        space=space,
        beside=others,
    )


def read_past(text: str, time: TimeIntent, now: datetime) -> Past | None:
    """The past that a question is about; None if it is about the present."""
    periods = tuple(period for period in time.periods if period.end <= now)
    if periods or time.first or time.last or asks_of_past(text):
        return Past(periods)
    return None


def trained_embedder(provider: str, model: str) -> str:
    """The name under which recall has parameters trained on this embedder; empty if it has none."""
    return _TRAINED_ON.get(model, "") if provider == "local" else ""


def adapt(vector: Vector, space: EmbeddingSpace) -> Vector:
    """The adapted vector, of length 1; `vector` itself where the space has no trained map."""
    embedder = trained_embedder(space.provider, space.model)
    matrix = _matrix(embedder) if embedder else None
    return vector if matrix is None else apply_map(vector, matrix)


def apply_map(vector: Vector, matrix: npt.NDArray[np.float32]) -> Vector:
    """
    Args:
        matrix: Square; its product with the vector is added to the vector.
    """
    adapted = vector + matrix @ vector
    return np.asarray(adapted / np.linalg.norm(adapted), dtype=np.float32)


@cache
def _matrix(name: str) -> npt.NDArray[np.float32] | None:
    path = LEARNT_FOLDER / f"{name}.npy"
    return np.load(path).astype(np.float32) if path.exists() else None
