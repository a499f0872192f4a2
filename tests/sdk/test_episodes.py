"""Episodes from Python: stored, found, of a conversation; each owner and user apart."""

from __future__ import annotations

import asyncio

import pytest

from palace.models import Palace
from palace.sdk import AsyncMemory, BadInput, EmptyQuery, Memory, ScopeError


@pytest.fixture
def memory(alice):
    return Memory(alice)


def test_what_is_stored_is_found_with_its_score(memory):
    episodes = memory.episodes(user_id="nora")
    stored = episodes.store("42", "We chose the night train.", tools=["timetable"], agent_id="p")
    assert (stored["conversation_id"], stored["user_id"], stored["agent_id"]) == ("42", "nora", "p")
    assert (stored["made_by"], stored["tools"], stored["started_at"]) == (
        "caller",
        ["timetable"],
        None,
    )
    [found] = episodes.search("How do we travel?", agent_id="p")
    assert 0 < found.pop("score") <= 1
    assert found == stored
    assert episodes.search("How do we travel?", agent_id="another") == []
    assert episodes.of_conversation("42") == [stored]


def test_others_have_none_of_it(memory, bob):
    memory.episodes(user_id="nora").store("42", "We chose the night train.")
    for others in (memory.episodes(), memory.episodes(user_id="x"), Memory(bob).episodes()):
        assert others.search("train") == []
        assert others.of_conversation("42") == []
    assert not Palace.objects.filter(subject="x").exists()


def test_what_cannot_be_is_said(memory):
    episodes = memory.episodes()
    with pytest.raises(BadInput, match="summary"):
        episodes.store("42", " ")
    with pytest.raises(BadInput, match="agent_id"):
        episodes.search("x", agent_id="")
    with pytest.raises(BadInput, match="limit"):
        episodes.search("x", limit=0)
    episodes.store("42", "A note.", started_at="2025-01-31")
    assert episodes.search("note", as_of="2025-01-30") == []
    with pytest.raises(EmptyQuery):
        episodes.search(" ")
    with pytest.raises(ScopeError):
        memory.episodes(user_id=" ")


@pytest.mark.django_db(transaction=True)
def test_it_can_be_awaited(alice):
    async def program():
        episodes = AsyncMemory(alice).episodes(user_id="nora")
        await episodes.store("42", "We chose the night train.")
        return await episodes.search("train"), await episodes.of_conversation("42")

    [[found], [stored]] = asyncio.run(program())
    assert found["id"] == stored["id"]
