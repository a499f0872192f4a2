from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from threading import Event, Thread

import pytest

from llm import chat, request_admission
from llm.errors import ModelUnavailable
from llm.models import Usage
from llm.request_admission import (
    OTHERS_AT_ONCE,
    READS_AT_ONCE,
    TooBusy,
    admitted,
    caller_with,
    note_caller,
    waiting,
)
from tests.model_server import Status
from tests.polling import PATIENCE_S, until

MESSAGES = [{"role": "user", "content": "Who came to supper?"}]


class Request(Thread):
    """Works in a thread of its own until the test ends it, and notes when it has begun."""

    def __init__(self, *, yields_s: float = 1, caller: str = ""):
        super().__init__(daemon=True)
        self.yields_s, self.caller = yields_s, caller
        self.began, self.go_on = Event(), Event()
        self.is_refused = False
        self.start()

    def run(self):
        try:
            with admitted(yields_s=self.yields_s, caller=self.caller):
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


def queue(*, yields_s=1, caller=""):
    """One more request, which waits."""
    alike = request_admission._admission._queues[yields_s].requests
    before = set(alike)
    request = Request(yields_s=yields_s, caller=caller)
    until(lambda: set(alike) - before)
    return request


@contextmanager
def full(monkeypatch, counts_s=PATIENCE_S):
    """As many requests as are worked on at a time; the last ones read for programs."""
    monkeypatch.setattr(request_admission, "COUNTS_S", counts_s)
    kinds = [*(1 for _ in range(OTHERS_AT_ONCE)), *(0 for _ in range(READS_AT_ONCE))]
    working = [Request(yields_s=each) for each in kinds]
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


@pytest.mark.parametrize(("many", "places", "one"), [(1, OTHERS_AT_ONCE, 0), (0, READS_AT_ONCE, 1)])
def test_neither_kind_takes_the_place_of_the_other(monkeypatch, many, places, one):
    monkeypatch.setattr(request_admission, "COUNTS_S", PATIENCE_S)
    with ExitStack() as after:
        working = [Request(yields_s=many) for _ in range(places)]
        for request in working:
            after.callback(request.end)
            assert request.has_begun()
        waits = queue(yields_s=many)
        after.callback(waits.end)
        other = Request(yields_s=one)
        assert other.has_begun()
        other.end()
        assert not waits.began.is_set()
        working[0].end()
        assert waits.has_begun()


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
    assert not request_admission._admission._counting


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
    assert not request_admission._admission._counting


def test_without_a_request_nothing_waits_nor_counts():
    with waiting():
        assert not request_admission._admission._counting


def test_past_the_most_that_may_wait_one_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(request_admission, "MOST_WAITING", 2)
    with full(monkeypatch) as working, ExitStack() as after:
        waiting_two = [queue(), queue()]
        for one in waiting_two:
            after.callback(one.end)
        with pytest.raises(TooBusy), admitted(yields_s=1):
            pytest.fail("It was let in.")
        others = [queue(yields_s=0), queue(yields_s=0.5)]
        for one in working:
            one.end()
        for one in others:
            assert one.has_begun()
            one.end()
        for one in waiting_two:
            assert one.has_begun()
            one.end()


def test_of_a_full_queue_the_caller_with_most_gives_a_place_to_others(monkeypatch):
    monkeypatch.setattr(request_admission, "MOST_WAITING", 3)
    with full(monkeypatch) as working, ExitStack() as after:
        many = [queue(caller="many") for _ in range(3)]
        other = queue(caller="other")
        for one in [*many, other]:
            after.callback(one.end)
        # The last of the many, which would have waited longest.
        many[-1].join(PATIENCE_S)
        assert [one.is_refused for one in many] == [False, False, True]
        for caller in ("many", "other"):
            with pytest.raises(TooBusy), admitted(yields_s=1, caller=caller):
                pytest.fail("It was let in.")
        for one in working:
            one.end()
        for one in [*many[:-1], other]:
            assert one.has_begun()
            one.end()


def test_only_who_was_let_in_is_a_caller_of_their_own(monkeypatch):
    monkeypatch.setattr(request_admission, "_known", {})
    monkeypatch.setattr(request_admission, "MOST_KNOWN", 2)
    assert caller_with("Bearer one") == ""
    for number in ("one", "two", "three"):
        note_caller(f"Bearer {number}")
    callers = [caller_with(f"Bearer {number}") for number in ("one", "two", "three")]
    assert callers[0] == ""
    assert len(set(callers)) == 3
    assert "three" not in callers[2]


def test_a_queue_that_lasts_takes_no_more_than_a_few(monkeypatch):
    monkeypatch.setattr(request_admission, "MOST_IN_LASTING_QUEUE", 1)
    with full(monkeypatch) as working, ExitStack() as after:
        waiting_two = [queue(), queue()]
        for one in waiting_two:
            after.callback(one.end)
        monkeypatch.setattr(request_admission, "LASTING_S", 0)
        with pytest.raises(TooBusy), admitted(yields_s=1):
            pytest.fail("It was let in.")
        for one in working:
            one.end()
        for one in waiting_two:
            assert one.has_begun()
            one.end()


@pytest.mark.parametrize("moment_s", [PATIENCE_S, 0])
def test_a_queue_lasts_only_where_those_in_it_wait_for_long(monkeypatch, moment_s):
    monkeypatch.setattr(request_admission, "A_MOMENT_S", moment_s)
    with full(monkeypatch) as working:
        waits = queue()
        alike = request_admission._admission._queues[waits.yields_s]
        before = alike._short_at
        working[0].end()
        assert waits.has_begun()
        assert (alike._short_at > before) == (moment_s > 0)
        waits.end()


def test_one_whose_turn_does_not_come_is_refused_and_waits_no_longer(monkeypatch, settings):
    settings.DB_POOL_WAIT_S = 0
    with full(monkeypatch):
        late = Request()
        late.join(PATIENCE_S)
        assert late.is_refused
        assert request_admission._admission._queues[1].requests == []
