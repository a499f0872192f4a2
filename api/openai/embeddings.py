"""OpenAI's endpoint of embeddings, with the model that embeds memories, by default a local one."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from numpy.typing import NDArray

from api.openai.access import check_key, let_go_of_connection
from api.openai.chat_request import OWN_MODEL, read_body
from api.openai.errors import BadRequest
from api.rest.access import check_rate
from api.rest.problems import Problem
from llm import usage
from llm.embedding import EmbeddingModel, deployment_model, embed
from llm.tokens import count_tokens
from settings_app import throttling
from settings_app.api_keys import ApiKey

# So that a request takes seconds. The local model reads fewer characters, about the second number.
MOST_TEXTS, MOST_CHARS, CHARS_READ = 128, 8_000, 1_000
CHARS_A_TOKEN = 4
_FORMATS = ("float", "base64")


@check_key("POST", "read", "write", writes=False)
def embeddings(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """Embed texts, without storing them or reading a palace."""
    body, model = read_body(request), deployment_model()
    texts = _texts(body.get("input"))
    _check_model(body, model)
    form = body.get("encoding_format")
    form = "float" if form is None else form
    if form not in _FORMATS:
        said = f"encoding_format is {' or '.join(_FORMATS)}."
        raise BadRequest(said, param="encoding_format")
    _count(key, texts)
    let_go_of_connection()
    with usage.noted() as calls:
        vectors = embed(texts, model, owner_id=key.owner_id, cached=False)
    tokens = sum(call.tokens_in for call in calls) or sum(map(count_tokens, texts))
    data = [
        {"object": "embedding", "index": place, "embedding": _written(vector, form)}
        for place, vector in enumerate(vectors)
    ]
    counted = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JsonResponse({"object": "list", "data": data, "model": model.name, "usage": counted})


def _count(key: ApiKey, texts: list[str]) -> None:
    """Count it for more than one request if it takes as long.

    Raises:
        Problem: 429, the key's rate limit is exceeded.
    """
    tokens = sum(min(len(text), CHARS_READ) for text in texts) // CHARS_A_TOKEN
    more = throttling.cost_of(tokens=tokens) - 1
    if more:
        check_rate(throttling.count_request(key, more))


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise BadRequest("input is a string, or a list of strings.", param="input")
    if len(texts) > MOST_TEXTS:
        said = f"input has up to {MOST_TEXTS} texts; send the others in another request."
        raise BadRequest(said, param="input")
    for place, text in enumerate(texts):
        _check_text(text, "input" if isinstance(given, str) else f"input[{place}]")
    return texts


def _check_text(text: Any, at: str) -> None:
    if not isinstance(text, str):
        said = (
            f"{at} is not a string. Numbers of tokens are another model's: send the text itself "
            "(in LangChain, check_embedding_ctx_length=False)."
        )
        raise BadRequest(said, param="input")
    if not text.strip():
        raise BadRequest(f"{at} is empty.", param="input")
    if len(text) > MOST_CHARS:
        said = f"{at} has {len(text):,} characters; up to {MOST_CHARS:,} are read. Split it."
        raise BadRequest(said, param="input")


def _check_model(body: dict[str, Any], model: EmbeddingModel) -> None:
    """Another model's vectors would not be comparable with these."""
    name = body.get("model")
    if name not in (None, "", OWN_MODEL, model.name):
        said = (
            f"There is no embedding model {name} here; there is “{model.name}”, or “{OWN_MODEL}”."
        )
        raise Problem(404, "model_not_found", said)
    wish = body.get("dimensions")
    if wish is not None and wish != model.dimensions:
        said = f"{model.name} makes {model.dimensions} dimensions; leave dimensions out."
        raise BadRequest(said, param="dimensions")


def _written(vector: NDArray[np.float32], form: str) -> list[float] | str:
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    numbers: list[float] = vector.tolist()
    return numbers
