"""Embeddings of texts; `embed()` is the only entry point.

A model always gives the same text the same vector, computed or cached; as a question it may have
another one, near it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import OperationalError, transaction
from numpy.typing import NDArray

from llm import providers, usage
from llm.database_writes import commit_without_waiting, is_disk_full
from llm.embedding import cache as _cache
from llm.embedding import remote
from llm.embedding.cache import EmbeddingModel, forget, prune
from llm.embedding.local_models import DIMENSIONS, LOCAL_MODELS
from llm.errors import EmbedderMisconfigured, ModelRefused
from llm.models import Usage

__all__ = [
    "EmbeddingModel",
    "check",
    "deployment_model",
    "embed",
    "forget",
    "load",
    "max_passage_chars",
    "prune",
]

logger = logging.getLogger(__name__)

SETTINGS_HINT = (
    "The embedding model is set by LOCI_EMBEDDING_PROVIDER, LOCI_EMBEDDING_MODEL, "
    "LOCI_EMBEDDING_DIMENSIONS and LOCI_EMBEDDING_API_KEY."
)

# Little-endian half precision: what is cached and returned.
_STORED = np.dtype("<f2")


def deployment_model() -> EmbeddingModel:
    """The operator's model (LOCI_EMBEDDING_*); by default the local one."""
    return EmbeddingModel(
        provider=settings.EMBEDDING_PROVIDER,
        name=settings.EMBEDDING_MODEL,
        dimensions=settings.EMBEDDING_DIMENSIONS,
        api_key=settings.EMBEDDING_API_KEY,
    )


def check(model: EmbeddingModel) -> None:
    """Check the model's settings, without computing or calling anything.

    Raises:
        EmbedderMisconfigured: they are invalid; the message says what to set.
    """
    if not model.is_local:
        try:
            providers.endpoint(model.provider, model.name, model.api_key)
        except ModelRefused as error:
            raise EmbedderMisconfigured(f"{error} {SETTINGS_HINT}") from None
    elif model.name not in LOCAL_MODELS:
        raise EmbedderMisconfigured(
            f"There is no local embedding model {model.name!r}; "
            f"set LOCI_EMBEDDING_MODEL to {' or '.join(LOCAL_MODELS)}, or "
            "LOCI_EMBEDDING_PROVIDER to its provider."
        )
    elif model.dimensions != DIMENSIONS:
        raise EmbedderMisconfigured(
            f"{model.name} makes vectors of {DIMENSIONS} dimensions, not "
            f"{model.dimensions}; set LOCI_EMBEDDING_DIMENSIONS to {DIMENSIONS}."
        )


def embed(
    texts: Sequence[str],
    model: EmbeddingModel,
    *,
    owner_id: int | None = None,
    purpose: str = Usage.Purpose.MEMORY_EMBED,
    is_question: bool = False,
    cached: bool = True,
) -> NDArray[np.float32]:
    """Vectors of unit length (to half precision), float32 (n, dimensions), in the texts' order.

    Recent texts come from the cache; the rest go to the model, metered as one call.
    Call it outside of a transaction: a rollback would delete the meter's row.

    Args:
        owner_id: The user for whom it is metered.
        is_question: The texts are questions about passages: some models embed them differently.
            They are not cached, as they seldom repeat.
        cached: If not, nothing is read from the cache, and nothing stays in it.

    Raises:
        EmbedderUnavailable: down, slow or busy, also after retries.
        EmbedderMisconfigured: wrong settings; the message says what to set.
    """
    readable = [_readable(text) for text in texts]
    if not readable:
        return np.empty((0, model.dimensions), dtype=np.float32)
    if is_question or not cached:
        with _metered(model, owner_id, purpose) as (meter, _):
            return _compute(readable, model, meter, is_question=is_question).astype(np.float32)
    keys = _cache.keys(readable, model)
    vectors = _cache.look_up(keys)
    missing = {key: text for key, text in zip(keys, readable, strict=True) if key not in vectors}
    if missing:
        with _metered(model, owner_id, purpose) as (meter, made):
            computed = _compute(list(missing.values()), model, meter)
            made |= {key: row.tobytes() for key, row in zip(missing, computed, strict=True)}
        vectors |= made
    stored = np.frombuffer(b"".join(vectors[key] for key in keys), _STORED)
    return stored.reshape(len(keys), model.dimensions).astype(np.float32)


def max_passage_chars(model: EmbeddingModel) -> int:
    """The longest passage that the model reads completely, in most languages.

    The local model reads 256 tokens. Many others read 512, and longer passages would mix topics.
    """
    return 900 if model.is_local else 1500


@contextmanager
def _metered(
    model: EmbeddingModel, owner_id: int | None, purpose: str
) -> Iterator[tuple[usage.Meter, dict[UUID, bytes]]]:
    """Meter a call, whatever its outcome, and cache the vectors that the block computes.

    All in one commit, which does not wait for the disk if the call was free.
    """
    meter, made = usage.Meter(), dict[UUID, bytes]()
    try:
        with usage.timed(meter):
            yield meter, made
    finally:
        try:
            _store(model, meter, made, owner_id, purpose)
        except OperationalError as error:
            # A search needs neither.
            if not is_disk_full(error):
                raise
            logger.warning("A call is not metered or cached, because the disk is full: %s", error)


def _store(
    model: EmbeddingModel,
    meter: usage.Meter,
    made: Mapping[UUID, bytes],
    owner_id: int | None,
    purpose: str,
) -> None:
    with transaction.atomic() if made else nullcontext():
        if made and model.is_local:
            commit_without_waiting()
        usage.keep(
            meter,
            purpose=purpose,
            provider=model.provider,
            model=model.name,
            owner_id=owner_id,
            waits_for_disk=not model.is_local,
        )
        _cache.keep(made)


def _compute(
    texts: Sequence[str], model: EmbeddingModel, meter: usage.Meter, *, is_question: bool = False
) -> NDArray[np.float16]:
    if model.is_local:
        vectors, meter.tokens_in = _local(texts, model, is_question=is_question)
    else:
        vectors = _remote(texts, model, meter)
    return vectors.astype(_STORED)


def load() -> None:
    """Load the deployment's model for questions, if it is a local one that is built, and run it."""
    from llm.embedding import model_build  # noqa: PLC0415 - as in `_local`.

    model = deployment_model()
    if model.is_local and model_build.is_built(settings.MODELS_DIR, model.name):
        _local(["A first text."], model, is_question=True)


def _local(
    texts: Sequence[str], model: EmbeddingModel, *, is_question: bool
) -> tuple[NDArray[np.float32], int]:
    # ONNX Runtime takes 45 MB, which the scheduler does not need.
    from llm.embedding import local  # noqa: PLC0415

    check(model)
    found = local.embedder(model.name, is_question=is_question)
    return found.embed(texts, is_question=is_question)


def _remote(texts: Sequence[str], model: EmbeddingModel, meter: usage.Meter) -> NDArray[np.float32]:
    check(model)
    try:
        return remote.embed(texts, model, meter)
    except EmbedderMisconfigured as error:
        raise EmbedderMisconfigured(f"{error} {SETTINGS_HINT}") from None


def _readable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
