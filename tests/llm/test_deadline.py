from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from llm import chat, client
from llm.deadline import DeadlinePassed, current, interruptible, within
from llm.embedding import deployment_model, embed
from llm.errors import ModelUnavailable
from llm.models import Usage
from tests.model_server import Slow, Status, Text

pytestmark = pytest.mark.django_db

MESSAGES = [{"role": "user", "content": "Who came to supper?"}]


@dataclass(frozen=True)
class Blanks:
    """Blanks before the answer, one every tenth of a second, as some send while a model thinks."""

    seconds: float

    def send(self, handler, request):
        handler.send_head(200, "application/json", None)
        until = time.monotonic() + self.seconds
        while time.monotonic() < until and not handler.model_server.stopped.wait(0.1):
            handler.wfile.write(b"1\r\n \r\n")
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")


class Guests(BaseModel):
    names: list[str]


def test_a_server_that_only_sends_blanks_is_not_waited_for(endpoint, model_server):
    model_server.answer(Blanks(20))
    started = time.monotonic()
    with within(0.5), pytest.raises(ModelUnavailable, match=r"did not answer within 0\.5 s\."):
        chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat")
    assert time.monotonic() - started < 5
    assert len(model_server.requests) == 1


def test_a_silent_server_is_tried_once(endpoint, model_server, settings):
    settings.LLM_MAX_RETRIES = 3
    model_server.answer(Slow(20))
    with within(0.3), pytest.raises(ModelUnavailable, match=r"did not answer within 0\.3 s\."):
        chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat")
    assert len(model_server.requests) == 1


def test_a_retry_waits_only_for_what_is_left(endpoint, model_server, settings, monkeypatch):
    settings.LLM_MAX_RETRIES = 3
    model_server.script([Status(500), Slow(20)])
    waits = []
    hooks = client.connect(endpoint)._client.event_hooks
    look = lambda request: waits.append(request.extensions["timeout"]["read"])  # noqa: E731
    monkeypatch.setitem(hooks, "request", [*hooks["request"], look])
    with within(1), pytest.raises(ModelUnavailable, match="did not answer within 1 s"):
        chat.complete(MESSAGES, endpoint=endpoint, purpose="chat")
    assert len(model_server.requests) == 2
    first, second = waits
    assert second < first <= 1


def test_nothing_is_sent_after_the_deadline(endpoint, model_server):
    with within(0), pytest.raises(ModelUnavailable, match="did not answer within 0 s"):
        chat.complete(MESSAGES, endpoint=endpoint, purpose="chat")
    assert not model_server.requests


def test_what_fails_once_is_retried_before_the_deadline(endpoint, model_server):
    model_server.script([Status(429), "Derek."])
    with within(30):
        assert chat.complete(MESSAGES, endpoint=endpoint, purpose="chat").text == "Derek."


def test_a_pause_that_ends_by_a_date_before_the_deadline_is_waited_for(endpoint, model_server):
    past = "Wed, 21 Oct 2015 07:28:00 GMT"
    model_server.script([Status(429, retry_after_s=past), "Derek."])
    with within(30):
        assert chat.complete(MESSAGES, endpoint=endpoint, purpose="chat").text == "Derek."


@pytest.mark.parametrize(
    "pause",
    [90, "Wed, 21 Oct 2099 07:28:00 GMT", "soon", "Wed, 21 Oct 2015 07:28:00 +99999999999999"],
)
def test_a_server_that_asks_to_wait_beyond_the_deadline_is_left(endpoint, model_server, pause):
    model_server.answer(Status(429, retry_after_s=pause))
    with within(30), pytest.raises(ModelUnavailable, match="is busy"):
        chat.complete(MESSAGES, endpoint=endpoint, purpose="chat")
    assert len(model_server.requests) == 1


def test_all_calls_share_the_time(endpoint, model_server):
    """The second one is the model's chance to correct itself."""
    model_server.script([Slow(0.4, "Nobody."), Slow(20)])
    started = time.monotonic()
    with within(1), pytest.raises(ModelUnavailable, match="did not answer within 1 s"):
        chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat")
    assert time.monotonic() - started < 5
    assert len(model_server.requests) == 2


def test_what_comes_in_time_is_whole(endpoint, model_server):
    model_server.answer(Text('{"names": ["Derek", "Amira"]}'))
    with within(30):
        found = chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat")
    assert found.names == ["Derek", "Amira"]


def test_a_deadline_ends_with_its_block(endpoint, model_server):
    with within(0.2):
        assert current().left_s <= 0.2
    assert current() is None
    model_server.answer(Slow(0.5, "Derek."))
    assert chat.complete(MESSAGES, endpoint=endpoint, purpose="chat").text == "Derek."


def test_local_work_that_may_be_interrupted_stops_at_the_deadline():
    local, texts = deployment_model(), ["The boat leaks."]
    with within(0):
        embed(texts, local, is_question=True)
        with pytest.raises(DeadlinePassed), interruptible():
            pytest.fail("It is over.")
    with within(60), interruptible():
        embed(texts, local, is_question=True)
        with within(0), pytest.raises(DeadlinePassed):
            embed(texts, local, is_question=True)
    assert Usage.objects.filter(outcome="cancelled").count() == 1
    with interruptible():
        embed(texts, local, is_question=True)
