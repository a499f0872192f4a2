"""Every way a chat model can answer or fail, over real HTTP."""

from __future__ import annotations

import gc
import logging
import socket
import time
from dataclasses import replace
from decimal import Decimal

import pytest

from llm import chat, chat_calls, client, providers
from llm.errors import BadModelOutput, LLMError, ModelRefused, ModelUnavailable
from llm.models import Usage
from llm.providers import Endpoint
from tests.llm.conftest import KEY
from tests.model_server import (
    CHAT,
    NO_CHOICES,
    CutOff,
    Json,
    ModelServer,
    NotJson,
    Slow,
    Status,
    Text,
)

pytestmark = pytest.mark.django_db

SECRET_WORDS = "my neighbour keeps a goose"
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": f"Did you know {SECRET_WORDS}?"},
]


def complete(endpoint, **how):
    return chat.complete(MESSAGES, endpoint=endpoint, purpose="chat", **how)


def stream(endpoint, **how):
    return chat.stream(MESSAGES, endpoint=endpoint, purpose="chat", **how)


def read_stream(endpoint):
    return "".join(stream(endpoint))


def test_an_answer_comes_with_its_tokens_and_is_metered(endpoint, model_server, alice):
    model_server.script([Text("Yes, I heard it.", model="gpt-4o-mini-2024-07-18")])
    answer = complete(endpoint, owner_id=alice.pk, max_tokens=50)
    assert answer.text == "Yes, I heard it."
    assert answer.model == "gpt-4o-mini-2024-07-18"
    assert (answer.tokens_in, answer.tokens_out) == (11, 7)
    assert answer.finish_reason == "stop"
    usage = Usage.objects.get()
    assert usage.owner == alice
    assert (usage.purpose, usage.provider) == ("chat", model_server.base_url)
    assert (usage.tokens_in, usage.tokens_out, usage.outcome) == (11, 7, "ok")
    assert usage.cost_usd == Decimal("0.00000585")


def test_the_request_is_the_protocols(endpoint, model_server):
    complete(endpoint, max_tokens=50, temperature=0.5)
    (request,) = model_server.requests
    assert request.path == CHAT
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "gpt-4o-mini",
        "messages": MESSAGES,
        "max_tokens": 50,
        "temperature": 0.5,
    }


def test_what_other_programs_set_for_openai_goes_to_nobody_else(
    endpoint, model_server, monkeypatch
):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    keyless = providers.endpoint(model_server.base_url, "gpt-4o-mini")
    complete(keyless)
    headers = str(model_server.requests[0].headers)
    assert not any(word in headers for word in ("org-1", "proj-1", "sk-openai"))


@pytest.mark.parametrize("status", [408, 429, 500, 503])
@pytest.mark.parametrize("call", [complete, read_stream])
def test_a_passing_failure_is_tried_again(endpoint, model_server, status, call):
    model_server.script([Status(status), "Second time lucky."])
    assert "lucky" in getattr(call(endpoint), "text", "Second time lucky.")
    assert len(model_server.requests) == 2
    assert Usage.objects.get().outcome == "ok"


def test_retry_after_is_honoured(endpoint, model_server):
    model_server.script([Status(429, retry_after_s=1.2), "Now."])
    started = time.monotonic()
    assert complete(endpoint).text == "Now."
    assert time.monotonic() - started > 1.2
    assert Usage.objects.get().duration_ms > 1200


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("reply", "error", "sentence"),
    [
        (Status(429, code="insufficient_quota"), ModelUnavailable, "limit (insufficient_quota)"),
        (Status(500), ModelUnavailable, "status 500"),
        (Slow(5), ModelUnavailable, "did not answer in time"),
        (CutOff(), ModelUnavailable, "could not be reached; check"),
        (Status(401), ModelRefused, "refused the API key"),
        (Status(402), ModelRefused, "account's credit"),
        (Status(403), ModelRefused, "key's rights"),
        (Status(404), ModelRefused, "check the model's name"),
        (Status(413), ModelRefused, "refused the request as too large"),
        (Status(400, code="context_length_exceeded"), ModelRefused, "(context_length_exceeded)"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:30]),
)
@pytest.mark.parametrize("call", [complete, read_stream])
def test_a_lasting_failure_gets_a_message_and_is_metered(
    endpoint, model_server, settings, reply, error, sentence, call
):
    settings.LLM_TIMEOUT_S = 0.3
    model_server.answer(reply)
    with pytest.raises(error) as raised:
        call(endpoint)
    assert sentence in str(raised.value)
    assert str(raised.value).endswith(".")
    assert Usage.objects.get().outcome == error.code


@pytest.mark.parametrize(
    ("reply", "error", "sentence"),
    [
        (NotJson(), ModelUnavailable, "not in OpenAI's protocol"),
        (NotJson('{"choices": [', "application/json"), ModelUnavailable, "not in OpenAI's"),
        (Json([1, 2]), ModelUnavailable, "not in OpenAI's protocol"),
        (Json({"error": {"message": SECRET_WORDS}}), ModelUnavailable, "stopped with an error"),
        (NO_CHOICES, BadModelOutput, "an empty answer"),
        (Json({"choices": [{"index": 0}]}), BadModelOutput, "an empty answer"),
        (Text(""), BadModelOutput, "an empty answer"),
        (Text("", finish_reason="length"), BadModelOutput, "raise its limit"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)[:30]),
)
def test_an_answer_that_is_none_is_an_error(endpoint, model_server, reply, error, sentence):
    model_server.answer(reply)
    with pytest.raises(error, match=sentence.replace("(", r"\(")):
        complete(endpoint)
    assert Usage.objects.get().outcome == error.code


def test_a_client_that_is_not_kept_closes_its_connections(endpoint, model_server):
    """Also while something else still holds its transport."""
    complete(endpoint)
    transport = client.connect(endpoint)._client
    client._client.cache_clear()
    gc.collect()
    assert transport.is_closed


def test_a_server_that_is_not_there_is_unavailable(settings):
    settings.LLM_MAX_RETRIES = 0
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(ModelUnavailable, match="the server's settings is its address"):
            complete(providers.endpoint(address, "any-model"))


@pytest.mark.parametrize("call", [complete, read_stream])
def test_neither_key_nor_words_are_in_an_error_or_a_log(endpoint, model_server, caplog, call):
    caplog.set_level(logging.DEBUG)
    echo = f"Incorrect API key {KEY} for: {SECRET_WORDS}"
    for status in (400, 401, 429, 500):
        model_server.script([Status(status, echo, code=echo)] * 2)
        with pytest.raises(LLMError) as raised:
            call(endpoint)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__
        assert KEY not in str(raised.value)
        assert SECRET_WORDS not in str(raised.value)
    assert KEY not in caplog.text
    assert SECRET_WORDS not in caplog.text
    assert KEY not in repr(endpoint)


def test_a_stream_arrives_in_pieces_and_is_metered_at_its_end(endpoint, model_server, alice):
    model_server.script(["A goose, and two ducks."])
    pieces = []
    for piece in stream(endpoint, owner_id=alice.pk):
        assert not Usage.objects.exists()
        pieces.append(piece)
    assert len(pieces) > 3
    assert "".join(pieces) == "A goose, and two ducks."
    usage = Usage.objects.get()
    assert (usage.tokens_in, usage.tokens_out, usage.owner) == (11, 7, alice)


def test_a_stream_closed_early_is_metered_by_what_came(endpoint, model_server):
    model_server.script(["One two three four five six seven eight nine ten."])
    pieces = stream(endpoint)
    assert next(pieces) == "One "
    pieces.close()
    usage = Usage.objects.get()
    assert usage.outcome == "cancelled"
    assert 0 < usage.tokens_out < 7
    assert usage.tokens_in > 5


def test_a_stream_nobody_reads_asks_nothing(endpoint, model_server):
    stream(endpoint).close()
    assert not model_server.requests
    assert not Usage.objects.exists()


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_stream_that_breaks_off_says_so_after_what_came(endpoint, model_server, cleanly):
    model_server.answer(CutOff("These are the only three words.", cleanly=cleanly))
    pieces = []
    with pytest.raises(
        ModelUnavailable, match=r"in the middle of its answer|not be reached; check"
    ):
        pieces.extend(stream(endpoint))
    assert Usage.objects.get().outcome == "model_unavailable"
    assert Usage.objects.get().tokens_out > 0


def test_a_stream_of_anything_else_is_an_error(endpoint, model_server):
    model_server.script([NotJson("data: {broken\n\n", "text/event-stream"), NotJson()])
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            read_stream(endpoint)


def test_an_error_in_the_middle_of_a_stream_is_reported_without_quoting_it(endpoint, model_server):
    event = '{"error": {"message": "' + SECRET_WORDS + '", "code": "overloaded"}}'
    model_server.script([NotJson(f"data: {event}\n\n", "text/event-stream")])
    with pytest.raises(ModelUnavailable, match=r"error \(overloaded\)") as raised:
        read_stream(endpoint)
    assert SECRET_WORDS not in str(raised.value)


def test_an_empty_stream_is_an_error(endpoint, model_server):
    model_server.script([Text("")])
    with pytest.raises(BadModelOutput, match="an empty answer"):
        read_stream(endpoint)


def test_tokens_are_estimated_where_the_server_does_not_count(endpoint, model_server):
    model_server.answer(Text("A goose, and two ducks.", usage=None))
    assert complete(endpoint).tokens_out > 4
    read_stream(endpoint)
    assert all(usage.tokens_in > 5 and usage.tokens_out > 4 for usage in Usage.objects.all())


def test_the_providers_own_bill_goes_before_the_price_table(endpoint, model_server):
    tokens = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": 0.0123}
    model_server.script([Text("Yes.", usage=tokens)])
    complete(endpoint)
    assert Usage.objects.get().cost_usd == Decimal("0.0123")


@pytest.mark.parametrize("cost", [-1, "free", float("nan"), 1e12])
def test_a_bill_that_makes_no_sense_is_not_kept(endpoint, model_server, cost):
    tokens = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "cost": cost}
    model_server.script([Text("Yes.", usage=tokens)])
    complete(endpoint)
    assert Usage.objects.get().cost_usd == Decimal("0.00000585")


def test_a_wrong_key_is_refused_without_repeating_it(settings):
    with ModelServer(api_key="the-right-one") as server:
        with pytest.raises(ModelRefused, match="refused the API key") as raised:
            complete(providers.endpoint(server.base_url, "any", KEY))
        assert KEY not in str(raised.value)
        assert complete(providers.endpoint(server.base_url, "any", "the-right-one")).text == "OK."


def test_nul_bytes_are_left_out(endpoint, model_server):
    model_server.answer("a\x00b")
    assert complete(endpoint).text == "ab"
    assert read_stream(endpoint) == "ab"


@pytest.mark.parametrize(
    ("refused", "asked_then"),
    [
        ("max_tokens", {"max_completion_tokens": 9, "temperature": 0}),
        ("temperature", {"max_tokens": 9}),
    ],
)
def test_a_parameter_the_model_refuses_is_left_out_and_remembered(
    endpoint, model_server, refused, asked_then
):
    def picky(request):
        if refused in request.body:
            return Status(400, f"Unsupported parameter: '{refused}'.", param=refused)
        return "Fine."

    model_server.answer(picky)
    for _ in range(2):
        assert complete(endpoint, max_tokens=9).text == "Fine."
    bodies = [request.body for request in model_server.requests]
    assert len(bodies) == 3
    for body in bodies[1:]:
        assert body == {"model": "gpt-4o-mini", "messages": MESSAGES, **asked_then}
    assert Usage.objects.count() == 2


def test_what_did_not_help_is_not_remembered(endpoint, model_server):
    model_server.answer(Status(400, "Too long: 9000 tokens in messages, 50 in max_tokens."))
    with pytest.raises(ModelRefused):
        complete(endpoint, max_tokens=50)
    assert chat_calls.dialect_of(endpoint) == chat_calls.Dialect()


def test_a_model_that_refuses_everything_special_is_asked_plainly(endpoint, model_server):
    def plain(request):
        for name in ("stream_options", "temperature", "max_tokens"):
            if name in request.body:
                return Status(400, f"Unknown parameter: {name}", param=name)
        return "Plainly."

    model_server.answer(plain)
    assert "".join(stream(endpoint, max_tokens=9)) == "Plainly."
    assert set(model_server.requests[-1].body) == {
        "model",
        "messages",
        "stream",
        "max_completion_tokens",
    }


def test_half_a_surrogate_pair_can_be_sent(endpoint, model_server):
    messages = [{"role": "user", "content": "cut \ud83d"}]
    chat.complete(messages, endpoint=endpoint, purpose="chat")
    assert model_server.requests[0].prompt == "cut ?"


def test_a_server_without_stream_options_is_asked_without(endpoint, model_server):
    def old(request):
        if "stream_options" in request.body:
            return Status(422, "Extra inputs are not permitted: stream_options")
        return "Old but good."

    model_server.answer(old)
    assert read_stream(endpoint) == "Old but good."
    assert not chat_calls.dialect_of(endpoint).stream_usage


def test_the_address_of_the_operators_server_is_never_shown(model_server):
    endpoint = Endpoint("http://10.0.0.5:8000/v1", "http://10.0.0.5:8000/v1", "", "a-model")
    assert str(endpoint) == "The model server (a-model)"
    assert "10.0.0.5" not in endpoint.address
    own = replace(endpoint, of_a_user=True)
    assert "10.0.0.5" in str(own)
    assert endpoint.identity == own.identity == str(own)
