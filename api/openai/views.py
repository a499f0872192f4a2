"""The proxy's addresses: /v1/chat/completions and /v1/models."""

from __future__ import annotations

import json
import weakref
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)

from api.openai import concurrency, message_filing
from api.openai.access import door, need
from api.openai.chat_request import OWN_MODEL, Asked, read_request
from api.openai.exchange import Exchange, let_go_of_connection
from api.openai.extractive_reply import quoted
from api.openai.memory_injection import context_of, mark_given, recall_for
from api.openai.message_text import read_history, without_our_answers
from api.openai.relay import Relay
from api.openai.replies import BodyReader
from api.rest import palaces
from api.rest.problems import Problem
from chat.mining_queue import is_automatic
from chat.models import Message
from llm import providers
from llm.errors import LLMError, ModelRefused, ModelUnavailable
from llm.passing import Passed, pass_on
from llm.providers import Endpoint
from palace.models import Palace
from settings_app.api_keys import ApiKey
from settings_app.models import settings_of

# Of an upstream's answer; what else it says is between it and us.
_HANDED_ON = ("content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id")
_HANDED_ON_BEGINS = ("x-ratelimit-", "openai-", "anthropic-ratelimit-")
# What servers answer that have no list of their models.
_NO_LIST = (404, 405, 501)
_OWN = {"id": OWN_MODEL, "object": "model", "created": 0, "owned_by": "loci"}


@door("POST", "write")
def chat_completions(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """OpenAI's own, with memory: what the person said is kept, and what fits it recalled."""
    asked = read_request(request, key)
    if asked.mode in ("on", "recall"):
        need(key, "read", "Or send “X-Loci-Memory: remember”, to go without what is kept.")
    endpoint = _endpoint(key)
    exchange = _begun(asked, key, has_model=endpoint is not None)
    if endpoint is None:
        response = quoted(exchange)
        exchange.finish()
    else:
        response = _passed_on(exchange, endpoint)
    for name, value in exchange.headers().items():
        response.headers[name] = value
    return response


def _endpoint(key: ApiKey) -> Endpoint | None:
    """
    Raises:
        Problem: 503, one is chosen and cannot be asked as it is set.
    """
    chosen = settings_of(key.owner_id).chat_model()
    if chosen.note:
        raise Problem(503, "model_refused", chosen.note)
    return chosen.endpoint


def _begun(asked: Asked, key: ApiKey, *, has_model: bool) -> Exchange:
    """What is new is kept before anything is asked of anyone; then memories are looked for."""
    exchange = Exchange(asked, key.owner_id, _mode(asked, key), read_history(asked.messages))
    palaces.subject_for(key, asked.user_id)  # Refused also where memory is off.
    if exchange.remembers:
        exchange.palace = palaces.palace_made(key, asked.user_id)
    elif exchange.recalls:
        exchange.palace = palaces.palace_of(key, asked.user_id)
    if exchange.palace is not None:
        _keep_and_recall(exchange, exchange.palace, key, has_model=has_model)
    return exchange


def _keep_and_recall(exchange: Exchange, palace: Palace, key: ApiKey, *, has_model: bool) -> None:
    now = settings_of(key.owner_id).local_now()
    history = exchange.history = without_our_answers(exchange.history, palace)
    find = message_filing.keep_told if exchange.remembers else message_filing.find_place
    place = exchange.place = find(palace, history, exchange.asked.conversation, now)
    if exchange.recalls:
        exchange.found = recall_for(palace, history, place, now, has_model=has_model)


def _mode(asked: Asked, key: ApiKey) -> str:
    """What the program wants, as far as the owner's settings allow."""
    recalls = asked.mode in ("on", "recall") and settings_of(key.owner_id).enabled
    remembers = asked.mode in ("on", "remember") and is_automatic(key.owner_id)
    if recalls:
        return "on" if remembers else "recall"
    return "remember" if remembers else "off"


def _passed_on(exchange: Exchange, endpoint: Endpoint) -> HttpResponseBase:
    concurrency.take(exchange.owner_id)
    exchange.endpoint = endpoint
    model = exchange.asked.model(endpoint.model)
    body = exchange.asked.with_context(context_of(exchange.found), model)
    with ExitStack() as unless_streamed:
        unless_streamed.callback(exchange.finish, Message.Status.FAILED)
        let_go_of_connection()
        try:
            answer = pass_on(endpoint, "POST", "/chat/completions", body)
            unless_streamed.callback(answer.close)
            if not answer.is_error:
                _have_given(exchange)
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    response = _streamed(exchange, answer)
                    unless_streamed.pop_all()
                    return response
            return _whole(exchange, answer, endpoint)
        except LLMError as error:
            exchange.outcome = error.code
            raise Problem(502, error.code, str(error)) from None


def _have_given(exchange: Exchange) -> None:
    if exchange.palace is not None:
        mark_given(exchange.palace, exchange.found)


def _whole(exchange: Exchange, answer: Passed, endpoint: Endpoint) -> HttpResponse:
    body = answer.whole()
    if answer.is_error:
        exchange.outcome = (ModelRefused if answer.status < 500 else ModelUnavailable).code
    else:
        exchange.reader = BodyReader(body)
        exchange.finish()
    return _handed_on(answer, endpoint, body)


def _streamed(exchange: Exchange, answer: Passed) -> HttpResponseBase:
    relay = Relay(exchange, answer)
    response = StreamingHttpResponse(relay, status=answer.status, headers=_headers(answer))
    response.headers["X-Accel-Buffering"] = "no"  # Some proxies keep an answer until it is whole.
    # Whose program hangs up before the first piece is asked for is never closed by the server.
    weakref.finalize(response, relay.close).atexit = False
    return response


def _handed_on(answer: Passed, endpoint: Endpoint, body: bytes) -> HttpResponse:
    if answer.is_error and endpoint.api_key:
        # Some providers quote a wrong key, which is the owner's and no business of a program's.
        body = body.replace(endpoint.api_key.encode(), b"[the provider's key]")
    return HttpResponse(body, status=answer.status, headers=_headers(answer))


def _headers(answer: Passed) -> dict[str, str]:
    return {
        name: value
        for name, value in answer.headers.items()
        if name in _HANDED_ON or name.startswith(_HANDED_ON_BEGINS)
    }


@door("GET", "read", "write")
def models(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """The provider's, after the owner's own choice under the name `loci`."""
    endpoint = _endpoint(key)
    if endpoint is None:
        return JsonResponse({"object": "list", "data": [_OWN]})
    answer, body = _asked(endpoint, "/models")
    if answer.status in _NO_LIST:
        listed = [{**_OWN, "id": endpoint.model, "owned_by": providers.shown(endpoint.provider)}]
        return JsonResponse({"object": "list", "data": [_OWN, *listed]})
    told = None if answer.is_error else _object(body)
    if told is None:
        return _handed_on(answer, endpoint, body)
    return JsonResponse({**told, "data": [_OWN, *(told.get("data") or [])]})


@door("GET", "read", "write")
def model(request: HttpRequest, key: ApiKey, name: str) -> HttpResponseBase:
    if name == OWN_MODEL:
        return JsonResponse(_OWN)
    endpoint = _endpoint(key)
    if endpoint is None:
        said = f"There is no model {name} here; there is “{OWN_MODEL}”, which quotes the palace."
        raise Problem(404, "model_not_found", said)
    answer, body = _asked(endpoint, f"/models/{quote(name)}")
    return _handed_on(answer, endpoint, body)


def _asked(endpoint: Endpoint, path: str) -> tuple[Passed, bytes]:
    let_go_of_connection()
    try:
        answer = pass_on(endpoint, "GET", path)
        with closing(answer):
            return answer, answer.whole()
    except LLMError as error:
        raise Problem(502, error.code, str(error)) from None


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(body)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
