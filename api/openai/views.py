"""The proxy's views: replies in the formats of OpenAI's API, the models there are, embeddings.

Embeddings are of the model that embeds memories, by default a local one.
"""

from __future__ import annotations

import base64
import json
import weakref
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote

import numpy as np
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from numpy.typing import NDArray

from api.openai import message_filing
from api.openai.access import BadRequest, check_key, let_go_of_connection
from api.openai.chat_request import (
    OWN_MODEL,
    WITHOUT_MEMORY,
    ChatRequest,
    read_body,
    read_history,
    read_request,
    user_id_of,
    without_our_answers,
)
from api.openai.exchange import (
    Exchange,
    context_of,
    mark_given,
    recall_for,
    take_slot,
)
from api.openai.reply_relay import AsItCame, BodyReader, Relay, ReplyFormat, quoted
from api.openai.responses import ResponsesFormat
from api.openai.responses_request import ResponsesRequest
from api.rest import access
from api.rest.access import check_rate, check_scope
from api.rest.problems import Problem
from chat.mining_queue import is_automatic
from chat.models import Message
from llm import providers, usage
from llm.embedding import EmbeddingModel, deployment_model, embed
from llm.errors import LLMError, ModelRefused, ModelUnavailable
from llm.providers import Endpoint
from llm.request_forwarding import ForwardedResponse, forward_request
from llm.tokens import count_tokens
from palace.models import Palace
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.models import ModelUse, settings_of

# Response headers that are forwarded; all others are dropped.
_FORWARDED_HEADERS = (
    "content-type",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-request-id",
)
_FORWARDED_HEADERS_BEGINS = ("x-ratelimit-", "openai-", "anthropic-ratelimit-")
# A shorter key, such as the "x" that local servers take, is no secret and part of any word.
_SHORTEST_KEY = 8
# Statuses of servers that cannot list their models.
_NO_LIST = (404, 405, 501)
_OWN = [
    {"id": name, "object": "model", "created": 0, "owned_by": "loci"}
    for name in (OWN_MODEL, WITHOUT_MEMORY)
]
# So that a request takes seconds. The local model reads fewer characters, about the second number.
MOST_TEXTS, MOST_CHARS, CHARS_READ = 128, 8_000, 1_000
CHARS_A_TOKEN = 4
_FORMATS = ("float", "base64")


@check_key("POST", "write")
def chat_completions(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """OpenAI's endpoint with memory: file the person's message, recall for it, forward."""
    return _reply(key, _endpoint(key), read_request(request, key))


@check_key("POST", "write")
def responses(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """OpenAI's newer endpoint: the same as a chat request, and its reply in the newer format."""
    body, endpoint = read_body(request), _endpoint(key)
    subject = access.subject_for(key, user_id_of(request, key, body))
    wanted = ResponsesRequest(body, key, subject)
    chat_request = wanted.as_chat_request(request, key, endpoint)
    return _reply(key, endpoint, chat_request, wanted)


def _reply(
    key: ApiKey,
    endpoint: Endpoint | None,
    chat_request: ChatRequest,
    wanted: ResponsesRequest | None = None,
) -> HttpResponseBase:
    """
    Args:
        wanted: The request in the newer format, if it came so: its reply has that format too.
    """
    if chat_request.mode in ("on", "recall"):
        check_scope(key, "read", "Or send “X-Loci-Memory: remember” to skip recall.")
    if endpoint is None:
        chat_request.check_without_model()
    exchange = _start_exchange(chat_request, key, has_model=endpoint is not None)
    reply_format = AsItCame() if wanted is None else ResponsesFormat(wanted, exchange)
    if endpoint is None:
        response = quoted(exchange, reply_format)
    else:
        response = _forward(exchange, endpoint, reply_format)
    for name, value in exchange.headers().items():
        response.headers[name] = value
    return response


def _endpoint(key: ApiKey) -> Endpoint | None:
    """
    Raises:
        Problem: 503, the chosen model is misconfigured.
    """
    chosen = settings_of(key.owner_id).chat_model(ModelUse.REPLIES)
    if chosen.note:
        raise Problem(503, "model_refused", chosen.note)
    return chosen.endpoint


def _start_exchange(chat_request: ChatRequest, key: ApiKey, *, has_model: bool) -> Exchange:
    """File new messages before calling any model; then recall."""
    exchange = Exchange(
        chat_request, key.owner_id, _mode(chat_request, key), read_history(chat_request.messages)
    )
    access.subject_for(key, chat_request.user_id)  # Refused also where memory is off.
    if exchange.remembers:
        exchange.palace = access.palace_made(key, chat_request.user_id)
    elif exchange.recalls:
        exchange.palace = access.palace_of(key, chat_request.user_id)
    if exchange.palace is not None:
        _keep_and_recall(exchange, exchange.palace, key, has_model=has_model)
    return exchange


def _keep_and_recall(exchange: Exchange, palace: Palace, key: ApiKey, *, has_model: bool) -> None:
    now = settings_of(key.owner_id).local_now()
    history = exchange.history = without_our_answers(exchange.history, palace)
    find = message_filing.file_messages if exchange.remembers else message_filing.find_place
    place = exchange.place = find(palace, history, exchange.chat_request.conversation, now)
    if exchange.recalls:
        exchange.found = recall_for(palace, history, place, now, has_model=has_model)


def _mode(chat_request: ChatRequest, key: ApiKey) -> str:
    """The requested mode, limited by the owner's settings."""
    recalls = chat_request.mode in ("on", "recall") and settings_of(key.owner_id).enabled
    remembers = chat_request.mode in ("on", "remember") and is_automatic(key.owner_id)
    if recalls:
        return "on" if remembers else "recall"
    return "remember" if remembers else "off"


def _forward(exchange: Exchange, endpoint: Endpoint, reply_format: ReplyFormat) -> HttpResponseBase:
    take_slot(exchange.owner_id)
    exchange.endpoint = endpoint
    model = exchange.chat_request.model(endpoint.model)
    body = exchange.chat_request.with_context(context_of(exchange.found), model)
    with ExitStack() as unless_streamed:
        unless_streamed.callback(exchange.finish, Message.Status.FAILED)
        let_go_of_connection()
        try:
            with exchange.counted():
                answer = forward_request(endpoint, "POST", "/chat/completions", body)
            unless_streamed.callback(answer.close)
            if not answer.is_error:
                _mark_given(exchange)
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    response = _streamed(exchange, answer, reply_format)
                    unless_streamed.pop_all()
                    return response
            return _whole(exchange, answer, endpoint, reply_format)
        except LLMError as error:
            exchange.outcome = error.code
            raise Problem(502, error.code, str(error)) from None


def _mark_given(exchange: Exchange) -> None:
    if exchange.palace is not None:
        mark_given(exchange.palace, exchange.found)


def _whole(
    exchange: Exchange, answer: ForwardedResponse, endpoint: Endpoint, reply_format: ReplyFormat
) -> HttpResponse:
    body = answer.whole()
    if answer.is_error:
        exchange.outcome = (ModelRefused if answer.status < 500 else ModelUnavailable).code
    else:
        exchange.reader = BodyReader(body)
        body = reply_format.whole(body)
        exchange.finish()
    return _forward_response(answer, endpoint, body)


def _streamed(
    exchange: Exchange, answer: ForwardedResponse, reply_format: ReplyFormat
) -> HttpResponseBase:
    relay = Relay(exchange, answer, reply_format)
    response = StreamingHttpResponse(relay, status=answer.status, headers=_headers(answer))
    response.headers["X-Accel-Buffering"] = "no"  # Some proxies buffer whole responses.
    # The server does not close a body whose client disconnects before the first piece.
    weakref.finalize(response, relay.close).atexit = False
    return response


def _forward_response(answer: ForwardedResponse, endpoint: Endpoint, body: bytes) -> HttpResponse:
    if answer.is_error and len(endpoint.api_key) >= _SHORTEST_KEY:
        # Some providers quote a wrong key, which the program must not see.
        body = body.replace(endpoint.api_key.encode(), b"[the provider's key]")
    return HttpResponse(body, status=answer.status, headers=_headers(answer))


def _headers(answer: ForwardedResponse) -> dict[str, str]:
    return {
        name: value
        for name, value in answer.headers.items()
        if name in _FORWARDED_HEADERS or name.startswith(_FORWARDED_HEADERS_BEGINS)
    }


@check_key("GET", "read", "write")
def models(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """The provider's models, preceded by the owner's choice, with memory and without."""
    endpoint = _endpoint(key)
    if endpoint is None:
        return JsonResponse({"object": "list", "data": _OWN})
    answer, body = _fetch(endpoint, "/models")
    if answer.status in _NO_LIST:
        listed = {**_OWN[0], "id": endpoint.model, "owned_by": providers.shown(endpoint.provider)}
        return JsonResponse({"object": "list", "data": [*_OWN, listed]})
    answered = None if answer.is_error else _object(body)
    if answered is None:
        return _forward_response(answer, endpoint, body)
    return JsonResponse({**answered, "data": [*_OWN, *(answered.get("data") or [])]})


@check_key("GET", "read", "write")
def model(request: HttpRequest, key: ApiKey, name: str) -> HttpResponseBase:
    own = next((each for each in _OWN if each["id"] == name), None)
    if own is not None:
        return JsonResponse(own)
    endpoint = _endpoint(key)
    if endpoint is None:
        said = f"There is no model {name} here; there is “{OWN_MODEL}”, which quotes the palace."
        raise Problem(404, "model_not_found", said)
    answer, body = _fetch(endpoint, f"/models/{quote(name)}")
    return _forward_response(answer, endpoint, body)


def _fetch(endpoint: Endpoint, path: str) -> tuple[ForwardedResponse, bytes]:
    let_go_of_connection()
    try:
        answer = forward_request(endpoint, "GET", path)
        with closing(answer):
            return answer, answer.whole()
    except LLMError as error:
        raise Problem(502, error.code, str(error)) from None


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        answered = json.loads(body)
    except ValueError:
        return None
    return answered if isinstance(answered, dict) else None


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
