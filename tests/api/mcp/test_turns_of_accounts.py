"""One account's silent language model does not keep others from writing."""

from __future__ import annotations

import threading

import anyio
import pytest

from api.mcp import server
from settings_app.api_keys import issue
from settings_app.models import MemorySettings
from tests.api.mcp.conftest import ALL
from tests.polling import PATIENCE_S

SAID = {"messages": [{"content": "I just moved to Berlin."}]}


@pytest.fixture
def silent_model(owner, model_server):
    """The owner's model answers nobody until it is let go."""
    go_on = threading.Event()

    def wait(_request):
        go_on.wait(PATIENCE_S)
        return "At last."

    model_server.answer(wait)
    model_server.go_on = go_on
    chosen = MemorySettings(owner=owner, provider=model_server.base_url, model="silent")
    chosen.set_key("a-key")
    chosen.save()
    yield model_server
    go_on.set()


def test_others_write_while_one_accounts_model_is_silent(
    door, owner, stranger, silent_model, monkeypatch
):
    monkeypatch.setattr(server, "MOST_CALLS", server.MOST_WRITES_AT_ONCE + 1)
    outcomes = []

    async def remember(client):
        outcomes.append(await client.call_tool("remember", SAID))

    async def requests(number):
        with anyio.fail_after(PATIENCE_S):
            while len(silent_model.requests) < number:
                await anyio.sleep(0.01)

    keys = [issue(each, "an assistant", scopes=ALL)[1] for each in (owner, stranger)]

    async def talk():
        async with (
            door.client(keys[0], "auto") as own,
            door.client(keys[1], "auto") as others,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(server.MOST_CALLS + 1):
                tasks.start_soon(remember, own)
            await requests(server.MOST_WRITES_AT_ONCE)
            assert not (await others.call_tool("remember", SAID)).is_error
            assert not (await own.call_tool("recall", {"query": "Where to?"})).is_error
            with anyio.fail_after(PATIENCE_S):
                while not outcomes:
                    await anyio.sleep(0.01)
            # One more than may wait; the others run, or wait for their turn.
            [refused] = outcomes
            assert refused.meta["problem"]["code"] == "too_busy"
            assert len(silent_model.requests) == server.MOST_WRITES_AT_ONCE
            silent_model.go_on.set()

    anyio.run(talk)
    assert [each.is_error for each in outcomes[1:]] == [False] * server.MOST_CALLS
