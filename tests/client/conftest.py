"""One owner with a palace in this process, others with the same on a server."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from django.contrib.auth import get_user_model

from locipalace.client import AsyncMemory, Memory
from palace.sdk import Memory as EmbeddedMemory
from settings_app.api_keys import issue
from tests.asgi_server import AsgiServer


class Waited:
    """What is awaited, for a script that waits: each coroutine is run to its end."""

    def __init__(self, awaited, runner):
        self._awaited, self._runner = awaited, runner

    def __getattr__(self, name):
        def called(*args, **kwargs):
            result = getattr(self._awaited, name)(*args, **kwargs)
            if inspect.iscoroutine(result):
                return self._runner.run(result)
            return Waited(result, self._runner)

        return called


def key_of(owner, *, scopes=("read", "write", "admin"), **options):
    return issue(owner, "a program", scopes=scopes, **options)[1]


@pytest.fixture
def server(transactional_db):
    with AsgiServer() as served:
        yield served


@pytest.fixture
def embedded(transactional_db):
    return EmbeddedMemory(get_user_model().objects.create_user("embedded"))


@pytest.fixture
def memory(server):
    owner = get_user_model().objects.create_user("served")
    with Memory(server.url, key_of(owner)) as memory:
        yield memory


@pytest.fixture
def awaited(server):
    owner = get_user_model().objects.create_user("awaited")
    with asyncio.Runner() as runner:
        memory = AsyncMemory(server.url, key_of(owner))
        yield Waited(memory, runner)
        runner.run(memory.close())
