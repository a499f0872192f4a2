"""AsyncMemory: the same methods, awaited."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from palace.sdk import AsyncMemory, Memory, ScopeError, SetupError
from palace.sdk.asynchronous import (
    AsyncConversationMemory,
    AsyncEpisodicMemory,
    AsyncWorkingMemory,
)
from palace.sdk.episodes import EpisodicMemory
from palace.sdk.working import ConversationMemory, WorkingMemory

# What is made of it without asking anybody.
HANDLES = {"working", "conversation", "episodes"}


def methods_of(kind):
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


def test_nothing_is_missing():
    assert methods_of(Memory) - HANDLES == {
        *("add", "search", "get", "get_all", "update", "delete", "delete_all", "history", "reset")
    }


@pytest.mark.parametrize(
    ("waiting", "awaiting"),
    [
        (Memory, AsyncMemory),
        (WorkingMemory, AsyncWorkingMemory),
        (ConversationMemory, AsyncConversationMemory),
        (EpisodicMemory, AsyncEpisodicMemory),
    ],
)
def test_every_method_is_there_with_the_same_arguments(waiting, awaiting):
    for name in methods_of(waiting):
        awaited, called = getattr(awaiting, name), getattr(waiting, name)
        theirs, ours = inspect.signature(awaited), inspect.signature(called)
        assert list(theirs.parameters.values()) == list(ours.parameters.values())
        if name not in HANDLES:
            assert inspect.iscoroutinefunction(awaited)
            assert awaited.__doc__ == called.__doc__


@pytest.mark.django_db(transaction=True)
def test_all_of_it_works_awaited(alice):
    async def live():
        memory = AsyncMemory(alice)
        texts = ("User likes Python", "User lives in NYC", "User has a cat called Miso")
        added = await asyncio.gather(*(memory.add(text, user_id="alice") for text in texts))
        keys = [answer["results"][0]["id"] for answer in added]
        found = await memory.search("programming languages", user_id="alice", limit=1)
        assert found["results"][0]["id"] == keys[0]
        await memory.update(keys[0], "User likes Rust")
        assert (await memory.get(keys[0]))["memory"] == "User likes Rust"
        await memory.delete(keys[1])
        assert [one["event"] for one in await memory.history(keys[1])] == ["ADD", "DELETE"]
        assert len((await memory.get_all(user_id="alice"))["results"]) == 2
        assert await memory.delete_all(user_id="alice") == 2
        await memory.reset()
        assert await memory.history(keys[0]) == []
        with pytest.raises(ScopeError):
            await memory.add("hello")

    asyncio.run(live())


@pytest.mark.django_db(transaction=True)
def test_what_the_constructor_would_raise_the_first_call_does(alice):
    alice.is_active = False
    alice.save()
    memory = AsyncMemory("alice")
    with pytest.raises(SetupError):
        asyncio.run(memory.get_all(user_id="alice"))


def test_the_one_that_waits_says_what_to_use_in_an_event_loop(plain):
    async def live():
        with pytest.raises(SetupError, match="use AsyncMemory there"):
            plain.get_all(user_id="alice")
        with pytest.raises(SetupError, match="use AsyncMemory there"):
            Memory("alice")

    asyncio.run(live())
