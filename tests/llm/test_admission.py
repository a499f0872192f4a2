from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from threading import Event, Thread

import pytest

from llm import admission, chat
from llm.admission import AT_ONCE, TooBusy, admitted, waiting
from llm.errors import ModelUnavailable
from llm.models import Usage
from tests.model_server import Status
from tests.polling import PATIENCE_S, until

MESSAGES = [{"role": "user", "content": "Who came to supper?"}]


class Request(Thread):
    """Works in a thread of its own until the test ends it, and notes when it has begun."""

    def __init__(self, *, yields_s: float = 1):
        super().__init__(daemon=True)
        self.yields_s = yields_s
        self.began, self.go_on = Event(), Event()
        self.is_refused = False
        self.start()

    def run(self):
        try:
            with admitted(yields_s=self.yields_s):
                self.began.set()
                self.go_on.wait(PATIENCE_S)
        except TooBusy:
            self.is_refused = True

    def end(self):
        self.go_on.set()
        self.join(PATIENCE_S)
        assert not self.is_alive()

    def has_begun(self):
        return self.began.wait(PATIENCE_S)


def queue(**kind):
    """One more request, which waits."""
    before = len(admission._admission._queue)
    request = Request(**kind)
    until(lambda: len(admission._admission._queue) > before)
    return request


@contextmanager
def full(monkeypatch, counts_s=PATIENCE_S):
    """As many requests as are worked on at a time; the last one is of those that come first."""
    monkeypatch.setattr(admission, "COUNTS_S", counts_s)
    working = [*(Request() for _ in range(AT_ONCE - 1)), Request(yields_s=0)]
    try:
        assert all(one.has_begun() for one in working)
        yield working
    finally:
        for one in working:
            one.end()


def test_one_more_waits_for_one_to_end(monkeypatch):
    with full(monkeypatch) as working:
        waits = queue()
        assert not waits.began.is_set()
        working[0].end()
        assert waits.has_begun()
        waits.end()


def test_what_yields_lets_later_requests_go_first(monkeypatch):
    with full(monkeypatch) as working:
        write, page = queue(yields_s=60), queue(yields_s=30)
        working[0].end()
        assert page.has_begun()
        assert not write.began.is_set()
        page.end()
        assert write.has_begun()
        write.end()


def test_what_has_yielded_for_its_time_goes_first(monkeypatch):
    with full(monkeypatch) as working:
        early, late = queue(yields_s=0.02), queue(yields_s=0.02)
        working[0].end()
        assert early.has_begun()
        assert not late.began.is_set()
        early.end()
        assert late.has_begun()
        late.end()


def test_one_place_is_kept_for_what_yields_to_nobody(monkeypatch):
    with full(monkeypatch) as working:
        write = queue()
        working[-1].end()
        read = Request(yields_s=0)
        assert read.has_begun()
        assert not write.began.is_set()
        read.end()
        working[0].end()
        assert write.has_begun()
        write.end()


@pytest.mark.django_db
@pytest.mark.parametrize("fails", [False, True])
def test_while_a_request_waits_for_a_server_others_begin(
    monkeypatch, endpoint, model_server, fails
):
    beside = []

    def answer(_request):
        with full(monkeypatch):
            beside.append(True)
        return Status(500) if fails else "Derek."

    model_server.answer(answer)
    expected = pytest.raises(ModelUnavailable) if fails else nullcontext()
    with admitted(yields_s=1), expected:
        chat.complete(MESSAGES, endpoint=endpoint, purpose=Usage.Purpose.CHAT)
    assert beside
    assert all(beside)
    assert not admission._admission._counting


def test_what_takes_long_keeps_nobody_waiting(monkeypatch):
    with full(monkeypatch, counts_s=0.01):
        waits = Request()
        assert waits.has_begun()
        waits.end()


def test_what_goes_on_after_its_request_is_over_does_not_count():
    def pieces():
        with waiting():
            yield "a piece"

    with admitted(yields_s=0):
        late = pieces()
        next(late)
    late.close()
    assert not admission._admission._counting


def test_without_a_request_nothing_waits_nor_counts():
    with waiting():
        assert not admission._admission._counting


def test_past_the_most_that_may_wait_one_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(admission, "MOST_WAITING", 2)
    with full(monkeypatch) as working, ExitStack() as after:
        waiting_two = [queue(), queue()]
        for one in waiting_two:
            after.callback(one.end)
        with pytest.raises(TooBusy), admitted(yields_s=1):
            pytest.fail("It was let in.")
        first = queue(yields_s=0)
        for one in working:
            one.end()
        assert all(one.has_begun() for one in waiting_two)
        first.end()


def test_one_whose_turn_does_not_come_is_refused_and_waits_no_longer(monkeypatch, settings):
    settings.DB_POOL_WAIT_S = 0
    with full(monkeypatch):
        late = Request()
        late.join(PATIENCE_S)
        assert late.is_refused
        assert admission._admission._queue == []
