"""The behavioural cases of the fact API's contract, each under its number and name: memories,
scopes, history and filters.
"""

from __future__ import annotations

import pytest

from palace.models import Drawer
from palace.sdk import BadFilter, ScopeError
from tests.sdk.contract_calls import NEEDED, TALK, add_one, texts, where

# Memory CRUD


def test_01_add_single_fact(memory):
    [event] = memory.add("My name is Bob", user_id="bob")["results"]
    assert (event["event"], event["new_memory"]) == ("ADD", "User's name is Bob")
    assert event["old_memory"] is None


def test_02_add_conversation(memory):
    events = memory.add(TALK, user_id="alice")["results"]
    assert len(events) >= 3
    assert {event["event"] for event in events} == {"ADD"}
    assert Drawer.objects.filter(source="sdk").count() == 3


def test_03_add_with_empty_input(memory):
    assert memory.add("hello", user_id="x") == {"results": []}
    assert memory.add("", user_id="x") == {"results": []}
    assert memory.add([], user_id="x") == {"results": []}


def test_04_search_by_semantics(memory):
    add_one(memory, "User likes Python")
    add_one(memory, "I have a cat called Miso")
    first, *_ = memory.search("programming languages", user_id="alice")["results"]
    assert "Python" in first["memory"]
    assert first["score"] > 0.5


def test_05_search_with_limit(memory):
    memory.add(TALK, user_id="alice")
    memory.add("I speak French. I speak Italian.", user_id="alice")
    assert len(memory.search("Who is this?", user_id="alice", limit=3)["results"]) == 3


def test_06_get_by_id(memory):
    key = add_one(memory, "User likes Python")
    item = memory.get(key)
    assert (item["id"], item["memory"], item["user_id"]) == (key, "User likes Python", "alice")


def test_07_get_nonexistent(memory):
    assert memory.get("fake-id") is None
    assert memory.get("7c7b1d5e-9d4c-4d53-9ad6-0e3a3f1c0f2b") is None


def test_08_get_all_for_scope(memory):
    for text in ("User likes Python", "I have a cat called Miso", "User lives in NYC"):
        add_one(memory, text)
    assert len(memory.get_all(user_id="alice")["results"]) == 3


def test_09_update_overwrites(memory):
    key = add_one(memory, "User likes Python")
    assert memory.update(key, "new text")["memory"] == "new text"
    assert memory.get(key)["memory"] == "new text"
    assert texts(memory.search("new text", user_id="alice")) == ["new text"]


def test_10_update_changes_hash(memory):
    key = add_one(memory, "User likes Python")
    memory.update(key, "new text")
    assert memory.get(key)["hash"] == "f39092e2b663fef60bc0097fe914066e"


def test_11_delete_removes(memory):
    key = add_one(memory, "User likes Python")
    memory.delete(key)
    assert memory.get(key) is None
    assert memory.search("Python", user_id="alice") == {"results": []}


def test_12_delete_all_for_scope(memory):
    memory.add(TALK, user_id="alice")
    kept = add_one(memory, "User likes Python", user_id="bob")
    assert memory.delete_all(user_id="alice") >= 3
    assert memory.get_all(user_id="alice") == {"results": []}
    assert memory.get(kept)


def test_13_reset_clears_everything(memory):
    keys = [add_one(memory, "User likes Python", user_id=user) for user in ("alice", "bob")]
    memory.update(keys[0], "new text")
    memory.reset()
    for user, key in zip(("alice", "bob"), keys, strict=True):
        assert memory.get_all(user_id=user) == {"results": []}
        assert memory.search("Python", user_id=user) == {"results": []}
        assert memory.history(key) == []
    assert not Drawer.objects.exists(), "So do the words that were added."


# Memory update intelligence


def test_14_deduplication(memory):
    key = add_one(memory, "User likes Python")
    [event] = memory.add("User likes Python", user_id="alice")["results"]
    assert (event["event"], event["id"]) == ("NONE", key)
    assert len(memory.get_all(user_id="alice")["results"]) == 1


def test_15_update_on_contradiction(memory):
    key = add_one(memory, "User lives in NYC")
    [event] = memory.add("User moved to San Francisco", user_id="alice")["results"]
    assert (event["event"], event["id"]) == ("UPDATE", key)
    assert "NYC" in event["old_memory"]
    assert "San Francisco" in event["new_memory"]
    assert "San Francisco" in memory.get(key)["memory"]


def test_16_merge_on_refinement(memory):
    memory.add("User works in tech", user_id="alice")
    events = memory.add("User works at Google as a senior engineer", user_id="alice")["results"]
    assert "UPDATE" in {event["event"] for event in events}
    held = " ".join(texts(memory.get_all(user_id="alice")))
    assert "Google" in held
    assert "senior engineer" in held


def test_17_delete_on_negation(memory):
    add_one(memory, "User is vegetarian")
    events = memory.add("User started eating meat again", user_id="alice")["results"]
    assert {event["event"] for event in events} <= {"DELETE", "UPDATE"}
    assert events
    assert "User is vegetarian" not in texts(memory.get_all(user_id="alice"))


def test_18_multiple_events_per_add(memory):
    add_one(memory, "User lives in NYC")
    answer = memory.add("User moved to San Francisco. I have a cat called Miso.", user_id="alice")
    assert sorted(event["event"] for event in answer["results"]) == ["ADD", "UPDATE"]


# Scoping


def test_19_scope_isolation(memory):
    add_one(memory, "User likes Python", user_id="alice")
    assert memory.search("Python", user_id="bob") == {"results": []}
    assert memory.get_all(user_id="bob") == {"results": []}


def test_20_multi_scope_filter(memory):
    add_one(memory, "User likes Python", user_id="alice", agent_id="helper")
    assert memory.search("Python", user_id="alice", agent_id="helper")["results"]
    assert memory.search("Python", user_id="alice")["results"]
    assert memory.search("Python", user_id="alice", agent_id="other") == {"results": []}
    assert memory.search("Python", user_id="bob", agent_id="helper") == {"results": []}
    assert memory.search("Python", agent_id="helper") == {"results": []}, "Her own palace."


def test_21_missing_scope_error(memory):
    with pytest.raises(ScopeError) as caught:
        memory.add("User likes Python")
    assert str(caught.value) == NEEDED
    assert caught.value.code == "scope_missing"


def test_22_run_id_isolation(memory):
    add_one(memory, "User likes Python", run_id="session-1")
    assert memory.get_all(run_id="session-2") == {"results": []}
    add_one(memory, "User likes Python", run_id="session-2")
    assert len(memory.get_all(run_id="session-1")["results"]) == 1


# History


def test_23_add_creates_history(memory):
    key = add_one(memory, "User likes Python")
    [record] = memory.history(key)
    assert (record["event"], record["memory_id"], record["is_deleted"]) == ("ADD", key, False)
    assert (record["old_value"], record["new_value"]) == (None, "User likes Python")


def test_24_update_appends_history(memory):
    key = add_one(memory, "User likes Python")
    memory.update(key, "new text")
    changes = [(one["event"], one["old_value"], one["new_value"]) for one in memory.history(key)]
    assert changes == [
        ("ADD", None, "User likes Python"),
        ("UPDATE", "User likes Python", "new text"),
    ]


def test_25_delete_marks_in_history(memory):
    key = add_one(memory, "User likes Python")
    memory.delete(key)
    last = memory.history(key)[-1]
    assert (last["event"], last["is_deleted"], last["new_value"]) == ("DELETE", True, None)


def test_26_history_ordered_by_time(memory):
    key = add_one(memory, "User lives in NYC")
    memory.add("User moved to San Francisco", user_id="alice")
    memory.update(key, "User lives near San Francisco")
    memory.delete(key)
    records = memory.history(key)
    assert [one["event"] for one in records] == ["ADD", "UPDATE", "UPDATE", "DELETE"]
    assert [one["timestamp"] for one in records] == sorted(one["timestamp"] for one in records)


# Filters


@pytest.fixture
def tagged(memory):
    memory.add("User likes Python", user_id="alice", metadata={"tag": "work", "level": 3})
    memory.add("I have a cat called Miso", user_id="alice", metadata={"tag": "home", "level": 1})
    memory.add("User lives in NYC", user_id="alice", metadata={"tag": "place", "level": 2})

    def tagged(filters):
        answer = memory.search("Tell me everything", user_id="alice", filters=filters)
        return sorted(item["metadata"]["tag"] for item in answer["results"])

    return tagged


def test_27_equals_filter(tagged):
    assert tagged(where("tag", "eq", "work")) == ["work"]


def test_28_in_filter(tagged):
    assert tagged(where("tag", "in", ["work", "home"])) == ["home", "work"]


def test_29_and_composition(tagged):
    both = {"AND": [where("tag", "in", ["work", "home"]), where("level", "gte", 2)]}
    assert tagged(both) == ["work"]


def test_30_or_composition(tagged):
    assert tagged({"OR": [where("tag", "eq", "home"), where("level", "gt", 2)]}) == ["home", "work"]


def test_31_not_negation(tagged):
    assert tagged({"NOT": where("tag", "eq", "work")}) == ["home", "place"]


def test_32_contains_string(tagged):
    assert tagged(where("memory", "contains", "Python")) == ["work"]
    assert tagged(where("memory", "contains", "python")) == []
    assert tagged(where("memory", "icontains", "python")) == ["work"]
    with pytest.raises(BadFilter, match="is no operator of filters"):
        tagged(where("memory", "like", "Python"))


def test_filters_of_add_narrow_what_is_judged_beside(memory):
    """Not among the cases, but among the arguments."""
    work = {"filters": where("tag", "eq", "work"), "metadata": {"tag": "work"}}
    key = add_one(memory, "User likes Python", user_id="alice", metadata={"tag": "home"})
    again = add_one(memory, "User likes Python", user_id="alice", **work)
    assert again != key
    [event] = memory.add("User likes Python", user_id="alice", **work)["results"]
    assert (event["event"], event["id"]) == ("NONE", again)
