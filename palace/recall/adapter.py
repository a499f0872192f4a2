"""Adapter: from what a question says to what its answer would say, in the space of one model.

An embedder puts a question beside its own paraphrases; what answers it was said in other words, by
somebody else, at another time. A linear map on the question's side alone, learnt from questions
whose answers are known (`manage.py train_recall`), turns it there: the passages stay as they are
embedded. Such adapters on frozen embeddings are told of in Rücklé et al., MultiCQA (2020).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from palace.models import EmbeddingSpace

FOLDER = Path(__file__).parent / "learnt"
# One set of weights, at two precisions of arithmetic.
_LEARNT_FOR = {"all-MiniLM-L6-v2": "all-MiniLM-L6-v2", "all-MiniLM-L6-v2-int8": "all-MiniLM-L6-v2"}

Vector = npt.NDArray[np.float32]


def adapt(vector: Vector, space: EmbeddingSpace) -> Vector:
    """`vector` turned to where its answers are, of length 1; itself where no map was learnt."""
    learnt = _LEARNT_FOR.get(space.model) if space.provider == "local" else None
    turn = _matrix(learnt) if learnt else None
    return vector if turn is None else turned(vector, turn)


def turned(vector: Vector, turn: npt.NDArray[np.float32]) -> Vector:
    """
    Args:
        turn: Square; added to the vector is what it makes of it.
    """
    aim = vector + turn @ vector
    return np.asarray(aim / np.linalg.norm(aim), dtype=np.float32)


@cache
def _matrix(name: str) -> npt.NDArray[np.float32] | None:
    path = FOLDER / f"{name}.npy"
    return np.load(path).astype(np.float32) if path.exists() else None
