"""The memory service's calls, which only a server has, on our own server."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from locipalace.client import (
    AmbiguousSession,
    EmptyQuery,
    KeyRefused,
    Memory,
    NotFoundError,
    WrongPalace,
)
from tests.client.conftest import key_of

SAID = [
    {"role": "user", "content": "My sister Nora moved to Lisbon. She works at the aquarium."},
    {"role": "assistant", "content": "How does she like it?  "},
]


@pytest.mark.parametrize("kind", ["memory", "awaited"])
def test_what_was_said_is_kept_recalled_searched_and_deleted(request, server, kind):
    memory = request.getfixturevalue(kind)
    kept = memory.add_turn("s/1", SAID, user_id="bob / ß", metadata={"from": "a test"})
    assert (kept["session_id"], len(kept["drawers"])) == ("s/1", 2)
    recalled = memory.recall("Where does Nora work?", user_id="bob / ß", max_tokens=200)
    assert "aquarium" in recalled["context"]
    assert kept["id"] in {each["turn_id"] for each in recalled["citations"]}
    assert memory.recall("Where?", user_id="nobody")["context"] == ""
    stages = [{"stage": "floor", "shift": 20}, {"stage": "packing", "facts": 0}]
    refused = memory.recall("Where does Nora work?", user_id="bob / ß", recipe=stages)
    assert (refused["context"], refused["citations"]) == ("", [])
    # The question is said word for word: a vaguer one is refused on some processors.
    asked = {"user_id": "bob / ß", "session_id": "s/1", "limit": 5}
    found = memory.search_messages("How does she like it?", **asked)
    assert SAID[1]["content"] in [each["content"] for each in found["results"]]
    named = memory.entities(user_id="bob / ß")["results"]
    assert "Nora" in [each["name"] for each in named]
    story = memory.timeline("Nora", user_id="bob / ß")
    assert story["entity"]["name"] == "Nora"
    assert memory.relations("Nora", user_id="bob / ß", limit=5)["entity"] == story["entity"]
    assert memory.health()["status"] in ("ok", "degraded")
    for call in (memory.recall, memory.search_messages):
        with pytest.raises(EmptyQuery):
            call("  ", user_id="bob")


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["memory", "awaited"])
def test_a_person_and_a_session_are_deleted_for_good(request, server, kind):
    memory = request.getfixturevalue(kind)
    memory.add_turn("first", "I live in Lisbon.", user_id="bob")
    memory.add_turn("second", "I have a cat called Miso.", user_id="bob")
    assert memory.user_memories("bob", active=True)["total"] == 2
    assert memory.delete_session("first", user_id="bob") is None
    assert [each["key"] for each in memory.user_memories("bob")["memories"]] == ["has_pet"]
    assert memory.delete_user("bob") is None
    assert memory.user_memories("bob", limit=5) == {"memories": [], "total": 0}
    with pytest.raises(NotFoundError):
        memory.relations("Miso", user_id="bob")


@pytest.mark.parametrize(
    "user",
    [
        "a/../b?c#d%2Fe",
        *(pytest.param(user, marks=pytest.mark.exhaustive) for user in ("a/b", "..", "x/memories")),
    ],
)
def test_ids_are_quoted(memory, user):
    for name in (user, "another"):
        memory.add_turn(user, "I live in Lisbon.", user_id=name)
        memory.conversation(user, user_id=name).put({"step": 1})
        memory.episodes(user_id=name).store(user, "A talk about a home.")
    assert memory.user_memories(user, active=True)["total"] == 1
    assert memory.conversation(user, user_id=user).get() == {"step": 1}
    assert len(memory.episodes(user_id=user).of_conversation(user)) == 1
    with pytest.raises(AmbiguousSession) as caught:
        memory.delete_session(user)
    assert caught.value.status == 409
    memory.delete_session(user, user_id=user)
    assert memory.user_memories(user)["total"] == 0
    memory.delete_user(user)
    assert memory.conversation(user, user_id=user).get() == {}
    assert memory.user_memories("another")["total"] == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["memory", "embedded"])
def test_what_is_deleted_says_which_words_stay(request, kind):
    memory = request.getfixturevalue(kind)
    [first, second] = memory.add(
        "I live in Lisbon and I have a cat called Miso.", user_id="bob", timestamp="2025-05-01"
    )["results"]
    gone = memory.delete(first["id"])
    assert gone == gone.kept_total == 1
    [kept] = gone.kept
    assert (kept["why"], kept["memories"]) == ("other_memory", [second["id"]])
    written = memory.update(second["id"], "User has a cat named Soba")
    assert (written["object"], written["note"]) == ("Soba", None)
    assert "object" in written["changed"]
    gone = memory.delete(second["id"])
    assert (gone, gone.kept, gone.kept_total) == (1, [], 0)
    gone = memory.delete_all(user_id="bob")
    assert (gone, gone.kept) == (0, [])


def test_a_key_opens_what_it_was_made_for(server):
    owner = get_user_model().objects.create_user("owner")
    with Memory(server.url, key_of(owner)) as all_of_it:
        hers = all_of_it.add("I live in Lisbon.", user_id="alice")["results"][0]["id"]
    with Memory(server.url, key_of(owner, subject="bob")) as bobs:
        assert bobs.add("I speak French.")["results"][0]["event"] == "ADD"
        assert bobs.get(hers) is None
        with pytest.raises(WrongPalace):
            bobs.get_all(user_id="alice")
    with Memory(server.url, key_of(owner, scopes=["read"])) as reader:
        assert reader.get(hers)["memory"]
        with pytest.raises(KeyRefused) as caught:
            reader.delete(hers)
        assert (caught.value.code, caught.value.status) == ("missing_scope", 403)
    with Memory(server.url, "loci_nobody") as stranger, pytest.raises(KeyRefused) as caught:
        stranger.get(hers)
    assert (caught.value.code, caught.value.status) == ("bad_key", 401)
    assert "/settings/keys/" in str(caught.value)
