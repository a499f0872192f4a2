"""Working memory through the SDK: whose it is, what comes back, and what is raised."""

from __future__ import annotations

import asyncio
import json

import pytest

from palace.models import Palace
from palace.sdk import (
    AsyncMemory,
    BadInput,
    Memory,
    NamespaceFull,
    NotItsOwn,
    ScopeError,
    SetupError,
    TooMuch,
    WorkingMemoryAway,
)


def test_an_entry_is_set_read_listed_found_and_deleted(plain):
    working = plain.working("session/abc")
    item = working.set("inbox", "12 unread, 3 from Nora", category="email", tags=["mail"])
    assert item["key"] == "session/abc/inbox"
    assert item["category"] == "email"
    assert item["tags"] == ["mail"]
    assert json.loads(json.dumps(item)) == item
    assert working.get("inbox")["value"] == "12 unread, 3 from Nora"
    assert [one["key"] for one in working.list()] == ["session/abc/inbox"]
    [found] = working.search("unread mail")
    assert found["score"] > 0
    assert working.inventory().endswith(", category: email, tags: mail")
    assert working.delete("inbox")
    assert working.get("inbox") is None
    assert working.inventory() == ""


def test_other_namespaces_are_read_and_not_written(plain):
    plain.working("subagent/t1").set("results", "Found it")
    working = plain.working("session/abc")
    assert working.get("subagent/t1/results")["value"] == "Found it"
    assert working.list() == []
    assert [one["key"] for one in working.list("subagent")] == ["subagent/t1/results"]
    assert [one["key"] for one in working.search("found", prefix="")] == ["subagent/t1/results"]
    assert working.search("found") == []
    for write in (lambda: working.set("subagent/t1/x", "x"), lambda: working.delete("patrol/a/b")):
        with pytest.raises(NotItsOwn) as caught:
            write()
        assert caught.value.code == "not_its_own"


def test_limits_have_errors_of_their_own(plain, settings):
    settings.WORKING_ENTRIES = 1
    plain.working("session/abc").set("a", "x")
    with pytest.raises(NamespaceFull):
        plain.working("session/abc").set("b", "x")
    with pytest.raises(TooMuch):
        plain.conversation("42").put({"a": "x" * 65_536})
    for bad in ("session", "room/a", 3):
        with pytest.raises(BadInput):
            plain.working(bad)
    for bad in ("", "a\0", None):
        with pytest.raises(BadInput):
            plain.conversation(bad)
    with pytest.raises(ScopeError):
        plain.working("session/abc", user_id=" ")
    with pytest.raises(BadInput):
        plain.working("session/abc").search("x", limit=0)


def test_a_conversations_fields_are_put_and_read(plain):
    talk = plain.conversation("42")
    assert talk.get() == {}
    assert (talk.get_scratchpad(), talk.get_entities()) == ("", [])
    talk.put({"step": 3}, ttl_seconds=3600)
    talk.set_scratchpad("Rule 37")
    talk.set_entities([{"type": "Well", "id": "42-123"}])
    assert talk.get() == {
        "step": 3,
        "scratchpad": "Rule 37",
        "entities": [{"type": "Well", "id": "42-123"}],
    }
    assert (talk.get_field("step"), talk.get_field("none", 7)) == (3, 7)
    assert (talk.get_scratchpad(), len(talk.get_entities())) == ("Rule 37", 1)
    for bad in (lambda: talk.set_scratchpad(3), lambda: talk.set_entities("Well")):
        with pytest.raises(BadInput):
            bad()
    assert talk.delete(["step"]) == 1
    assert talk.delete() == 2


def test_it_belongs_to_whom_it_is_said_to(alice, bob):
    memory, strangers = Memory(alice), Memory(bob)
    memory.working("session/abc").set("a", "the owner's")
    memory.working("session/abc", user_id="nora").set("a", "Nora's")
    memory.conversation("42", user_id="nora").put({"a": 1})
    assert memory.working("session/abc").get("a")["value"] == "the owner's"
    assert memory.working("session/abc", user_id="nora").get("a")["value"] == "Nora's"
    assert memory.conversation("42").get() == {}
    for user_id in (None, "nora"):
        assert strangers.working("session/abc", user_id=user_id).list("") == []
        assert strangers.working("session/abc", user_id=user_id).get("a") is None
        assert strangers.working("session/abc", user_id=user_id).search() == []
        assert not strangers.working("session/abc", user_id=user_id).delete("a")
        assert strangers.conversation("42", user_id=user_id).get() == {}
        assert strangers.conversation("42", user_id=user_id).delete() == 0
        assert strangers.working("session/abc", user_id=user_id).inventory() == ""


def test_asking_makes_no_palace_and_writing_does(plain):
    plain.working("session/abc", user_id="new").list("")
    plain.conversation("42", user_id="new").get()
    assert not Palace.objects.filter(subject="new").exists()
    plain.conversation("42", user_id="new").put({"a": 1})
    assert Palace.objects.filter(subject="new", owner=plain.owner).exists()


def test_without_redis_it_is_said_to_be_away(plain, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    with pytest.raises(WorkingMemoryAway, match="Try again") as caught:
        plain.working("session/abc").set("a", "x")
    assert caught.value.code == "working_memory_away"


@pytest.mark.django_db(transaction=True)
def test_all_of_it_works_awaited(alice):
    async def live():
        memory = AsyncMemory(alice)
        working, talk = memory.working("session/abc"), memory.conversation("42")
        await asyncio.gather(*(working.set(f"key{n}", f"value {n}") for n in range(8)))
        assert len(await working.list()) == 8
        assert (await working.get("key3"))["value"] == "value 3"
        assert (await working.search("value", limit=2))[0]["score"] > 0
        assert await working.delete("key3")
        assert (await working.inventory()).count("\n- ") == 7
        await talk.put({"a": 1})
        await talk.set_scratchpad("note")
        assert await talk.get_scratchpad() == "note"
        await talk.set_entities(["x"])
        assert await talk.get_entities() == ["x"]
        assert await talk.get() == {"a": 1, "scratchpad": "note", "entities": ["x"]}
        assert await talk.get_field("a") == 1
        assert await talk.delete() == 3
        with pytest.raises(BadInput):
            memory.working("nowhere")
        with pytest.raises(ScopeError):
            memory.conversation("42", user_id="")
        with pytest.raises(SetupError, match="use AsyncMemory there"):
            Memory(alice).working("session/abc").get("a")

    asyncio.run(live())
