from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Event, Thread

import pytest
from pydantic import BaseModel

from llm import chat, deadline
from llm.deadline import DeadlinePassed, current, few_at_a_time, interruptible, waiting, within
from llm.embedding import deployment_model, embed
from llm.errors import ModelUnavailable
from llm.models import Usage
from tests.model_server import Slow, Status, Text
from tests.polling import PATIENCE_S

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


class Worker(Thread):
    """Works in a thread of its own until it is let go, and notes when it has begun."""

    def __init__(self):
        super().__init__(daemon=True)
        self.began, self.go_on = Event(), Event()
        self.start()

    def run(self):
        with few_at_a_time():
            self.began.set()
            self.go_on.wait(PATIENCE_S)

    def end(self):
        self.go_on.set()
        self.join(PATIENCE_S)
        assert not self.is_alive()


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(deadline, "PATIENCE_S", PATIENCE_S)


def take_turns():
    """Three workers, of which the third begins as one of the others ends."""
    working = [Worker(), Worker()]
    assert all(one.began.wait(PATIENCE_S) for one in working)
    third = Worker()
    assert not third.began.wait(0.05)
    working[0].end()
    assert third.began.wait(PATIENCE_S)
    working[1].end()
    third.end()


@pytest.mark.usefixtures("patient")
def test_of_work_that_is_done_few_at_a_time_the_third_waits_for_one_to_end():
    take_turns()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("fails", [False, True])
def test_while_work_waits_for_a_server_others_begin(endpoint, model_server, fails):
    beside = []

    def answer(_request):
        others = [Worker(), Worker()]
        beside.extend(other.began.wait(PATIENCE_S) for other in others)
        for other in others:
            other.end()
        return Status(500) if fails else "Derek."

    model_server.answer(answer)
    with few_at_a_time(), pytest.raises(ModelUnavailable) if fails else nullcontext():
        chat.complete(MESSAGES, endpoint=endpoint, purpose=Usage.Purpose.CHAT)
    assert beside
    assert all(beside)
    take_turns()


def test_work_that_takes_long_no_longer_counts(monkeypatch):
    monkeypatch.setattr(deadline, "PATIENCE_S", 0.01)
    working = [Worker() for _ in range(4)]
    assert all(one.began.wait(PATIENCE_S) for one in working)
    for one in working:
        one.end()
    monkeypatch.setattr(deadline, "PATIENCE_S", PATIENCE_S)
    take_turns()


@pytest.mark.usefixtures("patient")
def test_what_goes_on_after_its_work_is_over_does_not_count():
    def pieces():
        with waiting():
            yield "a piece"

    with few_at_a_time():
        late = pieces()
        next(late)
    late.close()
    take_turns()
