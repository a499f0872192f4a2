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
    assert found.pop("score") == pytest.approx((1 + found.pop("similarity")) / 2, abs=1e-6)
    assert found == stored
    assert episodes.search("How do we travel?", agent_id="another") == []
    assert episodes.of_conversation("42") == [stored]


def test_others_have_none_of_it(memory, bob):
    memory.episodes(user_id="nora").store("42", "We chose the night train.")
    for others in (memory.episodes(), memory.episodes(user_id="x"), Memory(bob).episodes()):
        assert others.search("train") == []
        assert others.of_conversation("42") == []
    assert not Palace.objects.filter(subject="x").exists()


def test_an_agents_episodes_are_found_across_people(memory, bob):
    for user in ("nora", "omar"):
        memory.episodes(user_id=user).store("1", "We chose the night train.", agent_id="p")
    found = memory.episodes().search("train", agent_id="p")
    assert {each["user_id"] for each in found} == {"nora", "omar"}
    assert [each["user_id"] for each in memory.episodes(user_id="omar").search("train")] == ["omar"]
    assert memory.episodes().search("train") == []
    assert Memory(bob).episodes().search("train", agent_id="p") == []
    bound = Memory(memory.owner, subject="nora").episodes()
    assert [each["user_id"] for each in bound.search("train", agent_id="p")] == ["nora"]


def test_what_cannot_be_is_said(memory):
    episodes = memory.episodes()
    with pytest.raises(BadInput, match="summary"):
        episodes.store("42", " ")
    with pytest.raises(BadInput, match="agent_id"):
        episodes.search("x", agent_id="")
    with pytest.raises(BadInput, match="limit"):
        episodes.search("x", limit=0)
    with pytest.raises(BadInput, match="query is a question as text, not 5"):
        episodes.search(5)
    with pytest.raises(BadInput, match="conversation_id is text, not None"):
        episodes.of_conversation(None)
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
