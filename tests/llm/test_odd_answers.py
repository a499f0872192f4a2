"""Answers of chat models that are not quite those of the protocol, and are read all the same."""

from __future__ import annotations

import json

import pytest

from llm.errors import ModelRefused
from llm.models import Usage
from tests.llm.test_chat import SECRET_WORDS, complete, read_stream
from tests.model_server import Json, NotJson, Text

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("tokens", [-1, "many", None, float("nan"), 10**12, [7]])
@pytest.mark.parametrize("call", [complete, read_stream])
def test_a_count_of_tokens_that_makes_no_sense_is_estimated(endpoint, model_server, call, tokens):
    model_server.answer(Text("Yes.", usage={"prompt_tokens": tokens, "completion_tokens": tokens}))
    call(endpoint)
    usage = Usage.objects.get()
    assert usage.outcome == "ok"
    assert 0 < usage.tokens_in < 50
    assert 0 < usage.tokens_out < 10


@pytest.mark.parametrize("call", [complete, read_stream])
def test_of_an_answer_in_parts_the_texts_are_read_and_thoughts_are_not(
    endpoint, model_server, call
):
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "A goose?"}]}
    parts = [thoughts, {"type": "text", "text": "Yes, "}, {"type": "text", "text": "it is."}]
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": parts}}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "choices": [choice]}
    pieces = [{"index": 0, "delta": {"content": parts}, "finish_reason": "stop"}]
    event = json.dumps(whole | {"object": "chat.completion.chunk", "choices": pieces})
    if call is complete:
        model_server.answer(Json(whole))
    else:
        model_server.answer(NotJson(f"data: {event}\n\ndata: [DONE]\n\n", "text/event-stream"))
    answer = call(endpoint)
    assert getattr(answer, "text", answer) == "Yes, it is."


def test_an_error_of_an_odd_type_is_reported_without_it(endpoint, model_server):
    class Odd:
        def send(self, handler, request):
            handler.send_json(400, {"error": {"message": SECRET_WORDS, "type": ["odd"]}})

    model_server.answer(Odd())
    with pytest.raises(ModelRefused, match=r"refused the request with status 400\.$"):
        complete(endpoint)
