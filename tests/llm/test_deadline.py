from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from llm import chat
from llm.deadline import DeadlinePassed, current, interruptible, within
from llm.embedding import deployment_model, embed
from llm.errors import ModelUnavailable
from llm.models import Usage
from tests.model_server import Slow, Text

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
        chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat", max_retries=0)
    assert time.monotonic() - started < 5
    assert len(model_server.requests) == 1


def test_a_silent_server_is_not_waited_for(endpoint, model_server):
    model_server.answer(Slow(20))
    with within(0.3), pytest.raises(ModelUnavailable, match=r"did not answer within 0\.3 s\."):
        chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat", max_retries=0)


def test_all_calls_share_the_time(endpoint, model_server):
    """The second one is the model's chance to correct itself."""
    model_server.script([Slow(0.4, "Nobody."), Slow(20)])
    started = time.monotonic()
    with within(1), pytest.raises(ModelUnavailable, match="did not answer within 1 s"):
        chat.structured(MESSAGES, Guests, endpoint=endpoint, purpose="chat", max_retries=0)
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
