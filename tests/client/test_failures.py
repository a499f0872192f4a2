"""What goes wrong between a program and its server, and what is done about it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest
from django.contrib.auth import get_user_model

from api.rest.base import GIVEN_UP_AFTER
from locipalace.client import (
    AsyncMemory,
    BadAnswer,
    BadInput,
    EmbeddingError,
    FactConflict,
    KeyRefused,
    Memory,
    NotFoundError,
    PalaceError,
    QuotaExceeded,
    ServerAway,
    SetupError,
    TooManyRequests,
    TooMuch,
    VectorStoreError,
    WorkingMemoryAway,
)
from locipalace.client.calls import Call, nothing
from locipalace.client.links import Send, Wait, exchange
from palace.models import Drawer, Fact
from tests.client.conftest import key_of
from tests.client.scripted_server import Answer, OddServer, hang_up, problem

PROJECT = Path(__file__).resolve().parents[2]
EMPTY = Answer(200, {"results": []})


def client_of(server, **options):
    return Memory(server.url, "loci_a-key", **options)


# Sent again


def add(server):
    with client_of(server) as memory:
        return memory.add("hello", user_id="alice")


def add_awaited(server):
    async def live():
        async with AsyncMemory(server.url, "loci_a-key") as memory:
            return await memory.add("hello", user_id="alice")

    return asyncio.run(live())


@pytest.mark.parametrize("call", [add, add_awaited])
def test_a_call_is_sent_again_as_it_was(call):
    busy = problem(409, "idempotency_in_progress", retry_after="0")
    full, away = (
        problem(429, "too_many_requests", retry_after="0"),
        Answer(503, "a proxy", {"Retry-After": "0"}),
    )
    with OddServer(full, away, busy, EMPTY) as server:
        assert call(server) == {"results": []}
    keys = {each.headers["idempotency-key"] for each in server.requests}
    assert len(server.requests) == 4
    assert len(keys) == 1
    assert {each.body for each in server.requests} == {server.requests[0].body}


def test_a_connection_that_breaks_is_opened_again():
    with OddServer(hang_up, EMPTY) as server:
        assert add(server) == {"results": []}


def test_each_write_has_a_key_of_its_own_and_a_read_has_none():
    with OddServer(EMPTY, EMPTY, EMPTY) as server, client_of(server) as memory:
        for _ in range(2):
            memory.add("hello", user_id="alice")
        memory.get_all(user_id="alice")
    first, second, read = (each.headers.get("idempotency-key") for each in server.requests)
    assert first != second
    assert read is None


def test_what_was_done_though_its_answer_was_lost_is_not_done_twice(server):
    owner = get_user_model().objects.create_user("owner")
    passed = []

    def pass_on(request):
        headers = {
            name: request.headers[name]
            for name in ("authorization", "idempotency-key", "content-type")
        }
        options = {"headers": headers, "content": request.body, "timeout": 60}
        passed.append(httpx.request(request.method, server.url + request.path, **options))
        return None if len(passed) == 1 else Answer(passed[-1].status_code, passed[-1].text)

    with OddServer(pass_on, pass_on) as between, Memory(between.url, key_of(owner)) as memory:
        [event] = memory.add("I live in Lisbon.", user_id="alice")["results"]
    assert passed[1].json() == passed[0].json() == {"results": [event]}
    assert passed[1].headers["Idempotency-Replayed"] == "true"
    assert (Drawer.objects.count(), Fact.objects.count()) == (1, 1)


def answers(status, code="", **headers):
    problem = {"code": code, "detail": "Why."}
    return httpx.Response(status, json=problem, headers=headers)


def waits_of(answer, retries=4):
    """How long is waited between tries that are all answered alike, and what is raised."""
    steps = exchange(Call("POST", "/turns", nothing), base_url="http://here", retries=retries)
    sent, waits = None, []
    try:
        while True:
            step = steps.send(sent)
            sent = answer if isinstance(step, Send) else None
            waits += [step.seconds] if isinstance(step, Wait) else []
    except PalaceError as error:
        return waits, error


def test_each_wait_is_longer_than_the_one_before_it():
    waits, error = waits_of(answers(503, "working_memory_away"), retries=8)
    assert isinstance(error, WorkingMemoryAway)
    assert all(0.25 * 2**at <= wait <= 0.5 * 2**at for at, wait in enumerate(waits[:6]))
    assert all(15 <= wait <= 30 for wait in waits[6:])
    assert len(waits) == 8


def test_the_server_says_how_long():
    waits, error = waits_of(answers(429, "too_many_requests", **{"Retry-After": "7"}))
    assert waits == [7, 7, 7, 7]
    assert isinstance(error, TooManyRequests)
    assert error.retry_after_s == 7
    in_a_while = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    [wait] = waits_of(answers(503, **{"Retry-After": in_a_while}), retries=1)[0]
    assert 0 < wait <= 20


def test_what_an_earlier_try_is_at_is_asked_for_until_it_would_be_given_up():
    busy = answers(409, "idempotency_in_progress", **{"Retry-After": "2"})
    waits, error = waits_of(busy, retries=1)
    assert set(waits) == {2}
    assert sum(waits) > GIVEN_UP_AFTER.total_seconds()
    assert error.code == "idempotency_in_progress"
    assert waits_of(busy, retries=0)[0] == []


def test_a_long_wait_is_reported_at_once():
    waits, error = waits_of(answers(429, "too_many_requests", **{"Retry-After": "3600"}))
    assert (waits, error.retry_after_s, error.status) == ([], 3600, 429)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "unknown_recipe", BadInput),
        (401, "bad_key", KeyRefused),
        (403, "missing_scope", KeyRefused),
        (404, "not_found", NotFoundError),
        (409, "fact_conflict", FactConflict),
        (413, "too_much", TooMuch),
        (507, "quota_exceeded", QuotaExceeded),
        (500, "of_tomorrow", PalaceError),
    ],
)
def test_what_waiting_does_not_mend_is_raised_at_once(status, code, kind):
    waits, error = waits_of(answers(status, code))
    assert (waits, type(error), error.code, error.status) == ([], kind, code, status)
    assert str(error) == "Why."


def test_what_only_the_server_distinguishes_has_the_code_that_the_sdk_has():
    statuses = {"unstorable_text": 400, "bad_json": 400, "too_large": 413, "no_such_fact": 404}
    raised = [waits_of(answers(status, code))[1] for code, status in statuses.items()]
    assert [error.code for error in raised] == ["bad_input", "bad_input", "too_much", "not_found"]
    _, away = waits_of(answers(503, "model_unavailable"), retries=0)
    assert (type(away), away.code) == (EmbeddingError, "embedding_error")
    _, full = waits_of(answers(507, "storage_full"))
    assert (type(full), full.code) == (VectorStoreError, "vector_store_error")


# Away, slow, or something else


def test_a_server_that_is_away_is_reported():
    with OddServer() as server:
        pass
    with client_of(server, retries=0) as memory, pytest.raises(ServerAway, match="base_url"):
        memory.get_all(user_id="alice")
    with client_of(server, retries=0) as memory, pytest.raises(ServerAway):
        memory.health()


def test_a_server_that_does_not_answer_in_time():
    let_go = threading.Event()

    def silent(request):
        let_go.wait(30)

    with OddServer(silent) as server, client_of(server, retries=0, timeout_s=0.2) as memory:
        with pytest.raises(ServerAway, match="in time"):
            memory.get_all(user_id="alice")
        let_go.set()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, "<html>Welcome!</html>"),
        Answer(200, "[" * 100_000),
        Answer(200, "7"),
        Answer(200, ""),
        Answer(404, "<html>No such page</html>"),
        Answer(404, {"no": "code"}),
        Answer(500, "<html>Oh no</html>"),
        Answer(302, "", {"Location": "https://elsewhere.example/"}),
    ],
    ids=["page", "deep", "number", "nothing", "missing page", "other json", "broken", "moved"],
)
def test_what_is_no_loci_is_no_answer(answer):
    with OddServer(answer) as server, client_of(server) as memory:
        with pytest.raises(BadAnswer):
            memory.get("7c7b1d5e-9d4c-4d53-9ad6-0e3a3f1c0f2b")
        assert len(server.requests) == 1


def test_an_answer_that_lacks_what_is_read_is_none():
    with OddServer(Answer(200, {}), Answer(200, {})) as server, client_of(server) as memory:
        with pytest.raises(BadAnswer, match="where a list was to come"):
            memory.history("7c7b1d5e-9d4c-4d53-9ad6-0e3a3f1c0f2b")
        with pytest.raises(BadAnswer, match="deleted"):
            memory.delete_all(user_id="alice")


def test_a_server_that_is_not_well_says_so():
    sick = {"status": "unavailable", "database": "away", "redis": "ok", "embedder": "ok"}
    with OddServer(Answer(503, sick)) as server, client_of(server) as memory:
        assert memory.health() == sick


def test_errors_by_field_are_kept():
    values = {
        "status": 400,
        "code": "bad_input",
        "detail": "limit: too large.",
        "errors": {"limit": ["too large"]},
    }
    with OddServer(Answer(400, values)) as server, pytest.raises(BadInput) as caught:
        client_of(server).get_all(user_id="alice", limit=100_000)
    assert caught.value.errors == {"limit": ["too large"]}


# What is sent


@pytest.mark.parametrize("name", ["..", ".", "a b", "ü?x=1#y", "%2e%2e"])
def test_a_name_stays_one_piece_of_the_address(name):
    with OddServer(EMPTY) as server, client_of(server) as memory:
        memory.delete_user(name)
    [asked] = server.requests
    assert httpx.URL(f"http://here{asked.path}").raw_path == asked.path.encode()
    assert asked.path.startswith("/users/")
    assert asked.path.count("/") == 2
    assert "?" not in asked.path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "http://here"}, "LOCI_API_KEY"),
        ({"base_url": "here:8000", "api_key": "k"}, "base_url"),
        ({"base_url": "http://", "api_key": "k"}, "base_url"),
        ({"base_url": "http://here", "api_key": "kéy"}, "no key"),
        ({"base_url": "http://here", "api_key": "k\nX-Other: 1"}, "no key"),
        ({"base_url": "http://here", "api_key": "k", "timeout_s": 0}, "timeout_s"),
        ({"base_url": "http://here", "api_key": "k", "timeout_s": "70"}, "timeout_s"),
    ],
)
def test_what_no_client_can_be_made_of_is_said_at_once(options, said):
    for kind in (Memory, AsyncMemory):
        with pytest.raises(SetupError, match=said):
            kind(**options)


def test_the_environment_names_server_and_key(monkeypatch):
    with OddServer(EMPTY) as server:
        monkeypatch.setenv("LOCI_URL", f"{server.url}/under/a/path/")
        monkeypatch.setenv("LOCI_API_KEY", "loci_secret")
        with Memory() as memory:
            memory.get_all(user_id="alice")
            assert "loci_secret" not in repr(vars(memory)) + repr(memory)
    assert server.requests[0].path == "/under/a/path/v1/memories/?limit=100&user_id=alice"
    assert server.requests[0].headers["authorization"] == "Bearer loci_secret"


def test_it_needs_nothing_of_the_server():
    loaded = "{name.split('.')[0] for name in sys.modules}"
    code = f"import sys, locipalace.client; print(*{{'django', 'palace'}} & {loaded})"
    path = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=path, cwd="/", capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
