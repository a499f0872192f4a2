"""Adapter: a linear map from a question's embedding to the embedding of its answer, per model.

An embedder places a question close to its paraphrases, but the answer uses other words, often by
another speaker at another time. The map applies to questions only; passages stay as embedded. It
is trained on questions with known answers (`manage.py train_recall`). Rücklé et al., MultiCQA
(2020), describe such adapters on frozen embeddings.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from palace.models import EmbeddingSpace

FOLDER = Path(__file__).parent / "learnt"
# One set of weights serves both precisions of the model.
_WEIGHTS_OF = {"all-MiniLM-L6-v2": "all-MiniLM-L6-v2", "all-MiniLM-L6-v2-int8": "all-MiniLM-L6-v2"}

Vector = npt.NDArray[np.float32]


def adapt(vector: Vector, space: EmbeddingSpace) -> Vector:
    """The adapted vector, of length 1; `vector` itself where the space has no trained map."""
    weights = _WEIGHTS_OF.get(space.model) if space.provider == "local" else None
    matrix = _matrix(weights) if weights else None
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
    path = FOLDER / f"{name}.npy"
    return np.load(path).astype(np.float32) if path.exists() else None
