"""Embeddings from any server that speaks OpenAI's protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm import client, providers, sent
from llm.embedding.cache import EmbeddingModel
from llm.errors import EmbedderMisconfigured, EmbedderUnavailable
from llm.providers import Endpoint
from llm.secrets_in_text import mask, masks_toward
from llm.tokens import count_tokens, reported_tokens
from llm.usage import Meter

# Gemini accepts at most 100, and a failed request should not cost much.
BATCH_TEXTS = 64
# Models whose vectors can be shortened; others refuse or ignore `dimensions`.
SHORTENABLE = ("text-embedding-3", "gemini-embedding", "qwen3-embedding")
# Providers refuse an empty text.
_BLANK = "(empty)"
# A shorter text is not refused for its length.
_SHORT_CHARS = 200

Vectors = NDArray[np.float32]


def embed(texts: Sequence[str], model: EmbeddingModel, meter: Meter) -> Vectors:
    """Unit vectors, float32 (n, dimensions), in order. Retried; counts tokens in the meter.

    A text that is too long for the model is truncated.

    Raises:
        EmbedderUnavailable: down, slow or busy, also after retries, or an invalid response.
        EmbedderMisconfigured: a wrong key, model, address or dimension.
    """
    endpoint = providers.endpoint(model.provider, model.name, model.api_key)
    readable = [text if text.strip() else _BLANK for text in texts]
    if masks_toward(endpoint.base_url):
        readable = [mask(text) for text in readable]
    meter.sent_record = sent.record_of(endpoint, readable)
    with (
        client.translated(endpoint, unavailable=EmbedderUnavailable, refused=EmbedderMisconfigured),
        sent.counting(meter.sent_record),
    ):
        batches = [
            _batch(readable[start : start + BATCH_TEXTS], model, endpoint, meter)
            for start in range(0, len(readable), BATCH_TEXTS)
        ]
    return np.concatenate(batches)


def _batch(
    texts: Sequence[str], model: EmbeddingModel, endpoint: Endpoint, meter: Meter
) -> Vectors:
    """Embed a batch; if it is refused, try smaller batches, then shorter texts.

    Otherwise one text over the model's limit would fail the whole batch.
    """
    import openai  # noqa: PLC0415 - see llm.client.

    try:
        return _request(texts, model, endpoint, meter)
    except openai.APIStatusError as error:
        if error.status_code not in {400, 413, 422}:
            raise
        if len(texts) == 1 and len(texts[0]) <= _SHORT_CHARS:
            raise
    if len(texts) == 1:
        (text,) = texts
        return _batch([text[: len(text) // 2]], model, endpoint, meter)
    half = len(texts) // 2
    parts = (texts[:half], texts[half:])
    return np.concatenate([_batch(part, model, endpoint, meter) for part in parts])


def _request(
    texts: Sequence[str], model: EmbeddingModel, endpoint: Endpoint, meter: Meter
) -> Vectors:
    parameters: dict[str, Any] = {}
    if any(name in model.name.lower() for name in SHORTENABLE):
        parameters["dimensions"] = model.dimensions
    answer: Any = client.connect(endpoint).embeddings.create(
        model=model.name,
        input=list(texts),
        # The only format that every server supports.
        encoding_format="float",
        timeout=client.timeout(None),
        **parameters,
    )
    vectors = _vectors(answer, len(texts), model, endpoint)
    reported = reported_tokens(getattr(getattr(answer, "usage", None), "prompt_tokens", None))
    meter.tokens_in += reported or sum(count_tokens(text) for text in texts)
    return vectors


def _vectors(answer: Any, expected: int, model: EmbeddingModel, endpoint: Endpoint) -> Vectors:
    items = getattr(answer, "data", None)
    if not isinstance(items, list):
        raise EmbedderUnavailable(client.not_the_protocol(endpoint))
    if len(items) != expected:
        raise EmbedderUnavailable(f"{endpoint} returned {len(items)} vectors for {expected} texts.")
    places = [getattr(item, "index", None) for item in items]
    if set(places) == set(range(expected)):
        items = [items[places.index(place)] for place in range(expected)]
    rows = [_decoded(getattr(item, "embedding", None)) for item in items]
    for row in rows:
        if row.shape != (model.dimensions,):
            raise EmbedderMisconfigured(
                f"{endpoint} makes vectors of {row.size} dimensions, not "
                f"{model.dimensions}; set LOCI_EMBEDDING_DIMENSIONS to {row.size}."
            )
    return _of_unit_length(np.stack(rows), endpoint)


def _decoded(embedding: Any) -> Vectors:
    """Decode a list of numbers, or base64 of little-endian float32, as some servers send."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    if not isinstance(embedding, list) or not embedding:
        raise ValueError("no vector")
    return np.asarray(embedding, dtype=np.float32)


def _of_unit_length(vectors: Vectors, endpoint: Endpoint) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise EmbedderUnavailable(f"{endpoint} returned a vector without direction.")
    scaled: Vectors = vectors / lengths
    return scaled
