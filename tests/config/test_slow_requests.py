"""One slow request never stalls another."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.test import Client

from language.english.facts import guards
from llm.secrets_in_text import find_secrets
from settings_app.api_keys import issue
from settings_app.models import MemorySettings
from tests.asgi_server import AsgiServer
from tests.polling import PATIENCE_S, until

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKED = 12


@pytest.fixture
def server(transactional_db):
    with AsgiServer() as server:
        yield server


@pytest.fixture
def silent_model(alice, model_server):
    """Alice's model answers nobody until it is let go."""
    go_on = threading.Event()

    def wait(_request):
        go_on.wait(PATIENCE_S)
        return "At last."

    model_server.answer(wait)
    chosen = MemorySettings(owner=alice, provider=model_server.base_url, model="silent")
    chosen.set_key("a-key")
    chosen.save()
    model_server.go_on = go_on
    yield model_server
    go_on.set()


def test_while_requests_wait_for_a_model_others_are_answered(server, alice, silent_model):
    _, key = issue(alice, "a program")
    headers = {"Authorization": f"Bearer {key}"}
    browser = Client()
    browser.force_login(alice)
    cookies = {name: morsel.value for name, morsel in browser.cookies.items()}

    def chat(_number):
        body = {"model": "loci", "messages": [{"role": "user", "content": "Hello."}]}
        return program.post("/v1/chat/completions", json=body).status_code

    with (
        httpx.Client(
            base_url=server.url, headers=headers, timeout=PATIENCE_S, trust_env=False
        ) as program,
        httpx.Client(
            base_url=server.url, cookies=cookies, timeout=PATIENCE_S, trust_env=False
        ) as person,
        ThreadPoolExecutor(BLOCKED) as pool,
    ):
        blocked = [pool.submit(chat, number) for number in range(BLOCKED)]
        until(lambda: len(silent_model.requests) >= BLOCKED)
        assert person.get("/memory/").status_code == 200
        assert program.get("/health/live").status_code == 200
        asked = program.post("/recall", json={"query": "When does the ferry leave?"})
        assert asked.status_code == 200
        assert not any(each.done() for each in blocked)
        silent_model.go_on.set()
        assert {each.result() for each in blocked} == {200}


@pytest.mark.parametrize("read", [find_secrets, guards.speaks_of_itself, guards.begins_play])
def test_while_a_long_text_is_read_other_threads_go_on(read):
    text = "the ferry leaves at nine under old trees near a river in 1984 " * 30_000
    waits, over = [], threading.Event()

    def tick():
        while not over.is_set():
            began = time.monotonic()
            time.sleep(0.005)
            waits.append(time.monotonic() - began)

    other = threading.Thread(target=tick)
    other.start()
    began = time.monotonic()
    assert not read(text)
    took = time.monotonic() - began
    over.set()
    other.join()
    assert max(waits) < took / 2
