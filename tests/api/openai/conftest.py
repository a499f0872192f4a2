"""Programs with OpenAI's client, before Loci's own server, which passes on to a model we play."""

from __future__ import annotations

import threading

import httpx2
import openai
import pytest

from palace.models import Drawer, Palace
from settings_app.api_keys import issue
from settings_app.models import MemorySettings
from tests.asgi_server import AsgiServer
from tests.browser.conftest import database_sessions
from tests.polling import PATIENCE_S, until

UPSTREAMS_KEY = "sk-upstream-of-alice"


@pytest.fixture
def server(transactional_db):
    before = database_sessions()
    with AsgiServer() as server:
        yield server
    for thread in threading.enumerate():
        if thread.name.startswith("relay"):
            thread.join(PATIENCE_S)
    assert server.misplaced_queries == []
    until(lambda: database_sessions() <= before)


@pytest.fixture
def model(alice, model_server):
    """Alice has chosen the model that the test plays."""
    chosen = MemorySettings(owner=alice, provider=model_server.base_url, model="test-model")
    chosen.set_key(UPSTREAMS_KEY)
    chosen.save()
    return model_server


@pytest.fixture
def client_for(server):
    """OpenAI's client with a key of Loci's."""
    clients = []

    def make(owner, kind=openai.OpenAI, **options):
        of_key = ("scopes", "subject", "trusts_open_webui")
        key_options = {name: options.pop(name) for name in of_key if name in options}
        _, key = issue(owner, "a program", **key_options)
        client = kind(base_url=f"{server.url}/v1", api_key=key, max_retries=0, **options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        if isinstance(client, openai.OpenAI):
            client.close()


@pytest.fixture
def program(client_for, alice):
    return client_for(alice)


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def ask(client, *messages, **options):
    sent = [user(each) if isinstance(each, str) else each for each in messages]
    headers = options.pop("headers", {})
    return client.chat.completions.create(
        messages=sent, model=options.pop("model", "loci"), extra_headers=headers, **options
    )


def post(program, body, **headers):
    """By hand: what no client would send."""
    headers = {"Authorization": f"Bearer {program.api_key}", **headers}
    address = f"{program.base_url}chat/completions"
    return httpx2.post(address, content=body, headers=headers)


def kept(owner, subject=""):
    """Role and text of all that is kept, in the order of the conversations."""
    palace = Palace.objects.filter(owner=owner, subject=subject).first()
    drawers = Drawer.objects.filter(palace=palace).order_by("room_id", "position")
    return list(drawers.values_list("role", "text"))


def rooms(owner):
    drawers = Drawer.objects.filter(palace__owner=owner).order_by("room_id")
    return list(drawers.values_list("conversation", flat=True).distinct())
