"""Working memory, episodes and the ledger through HTTP."""

from __future__ import annotations

import pytest

from palace.models import Palace
from palace.working import peek_conversation
from tests.api.rest.conftest import client_of

ALICE = {"user_id": "alice"}


def good(answer, status=200):
    assert answer.status_code == status, answer.content
    return answer.data


def test_what_is_noted_of_a_conversation_is_merged_kept_on_and_deleted(program):
    noted = good(program.put("/working-memory/42?user_id=alice", {"fields": {"step": 1}}))
    assert noted == {"conversation_id": "42", "fields": {"step": 1}}
    more = {"fields": {"scratchpad": "Rule 37 …", "open": ["a"]}, "ttl_seconds": 600, **ALICE}
    fields = good(program.put("/working-memory/42", more))["fields"]
    assert fields == {"open": ["a"], "scratchpad": "Rule 37 …", "step": 1}
    alices = Palace.objects.get(subject="alice")
    ending = peek_conversation(alices, "42").expires_at
    assert good(program.get("/working-memory/42", ALICE))["fields"] == fields
    assert peek_conversation(alices, "42").expires_at > ending, "To read it keeps it on."
    assert good(program.get("/working-memory/42"))["fields"] == {}, "The owner's own has none."
    gone = good(program.delete("/working-memory/42?user_id=alice&fields=step&fields=none"))
    assert gone == {"deleted": 1}
    assert good(program.delete("/working-memory/42", {"fields": ["open"], **ALICE})) == {
        "deleted": 1
    }
    assert good(program.delete("/working-memory/42", {"fields": [], **ALICE})) == {"deleted": 0}
    assert good(program.delete("/working-memory/42?user_id=alice")) == {"deleted": 1}
    assert good(program.get("/working-memory/42", ALICE))["fields"] == {}


def test_more_than_a_conversation_may_hold_changes_nothing(program):
    good(program.put("/working-memory/42", {"fields": {"a": "x" * 40_000}}))
    answer = program.put("/working-memory/42", {"fields": {"b": "x" * 40_000}})
    assert (answer.status_code, answer.data["code"]) == (413, "too_much")
    assert list(good(program.get("/working-memory/42"))["fields"]) == ["a"]


def test_entries_are_kept_found_and_read_across_namespaces(program, settings):
    settings.WORKING_ENTRIES = 2
    own, patrol = "/namespaces/session/abc", "/namespaces/patrol/heartbeat"
    inbox = {"value": "12 unread, 3 from Nora", "category": "email", "tags": ["inbox"]}
    entry = good(program.put(f"{own}/entries/emails_inbox", {**inbox, **ALICE}))
    assert (entry["key"], entry["tags"]) == ("session/abc/emails_inbox", ["inbox"])
    good(program.put(f"{patrol}/entries/alerts/latest?user_id=alice", {"value": "Nora is late"}))
    kept = good(program.get(f"{own}/entries/emails_inbox", ALICE))
    assert kept["value"] == inbox["value"]
    assert kept["expires_at"] > entry["expires_at"]
    across = good(program.get(f"{own}/entries/patrol/heartbeat/alerts/latest", ALICE))
    assert across["value"] == "Nora is late"
    keys = []
    for more in ({}, {"prefix": ""}, {"prefix": "patrol"}):
        listed = good(program.get(f"{own}/entries", {**ALICE, **more}))["entries"]
        keys.append([entry["key"] for entry in listed])
    ours, theirs = "session/abc/emails_inbox", "patrol/heartbeat/alerts/latest"
    assert keys == [[ours], [theirs, ours], [theirs]]
    asked = {"query": "Nora", "prefix": "", **ALICE}
    found = good(program.post(f"{own}/search", asked))["entries"]
    assert {entry["key"] for entry in found} == {ours, theirs}
    assert all(entry["score"] > 0 for entry in found)
    assert ours in good(program.get(f"{own}/inventory", ALICE))["inventory"]
    refused = program.put(f"{own}/entries/patrol/heartbeat/alerts", {"value": "x", **ALICE})
    assert (refused.status_code, refused.data["code"]) == (403, "not_its_own")
    good(program.put(f"{own}/entries/second", {"value": "x", **ALICE}))
    full = program.put(f"{own}/entries/third", {"value": "x", **ALICE})
    assert (full.status_code, full.data["code"]) == (409, "namespace_full")
    address = f"{own}/entries/second?user_id=alice"
    assert [good(program.delete(address))["deleted"] for _ in range(2)] == [True, False]
    assert program.get(address).status_code == 404


def test_what_was_injected_is_marked_until_it_is_evicted(program):
    item = {"item": "skill:geology", **ALICE}
    assert good(program.post("/ledger/42/check", item)) == {
        "item": "skill:geology",
        "injected": False,
        "value": None,
    }
    assert not Palace.objects.filter(subject="alice").exists(), "To look makes no palace."
    marked = good(program.post("/ledger/42/mark", item))
    assert marked == {"item": "skill:geology", "injected": True, "value": "injected"}
    good(program.post("/ledger/42/mark?user_id=alice", {"item": "block", "value": "1"}))
    assert good(program.post("/ledger/42/check", item)) == marked
    assert good(program.get("/ledger/42", ALICE)) == {
        "conversation_id": "42",
        "items": {"block": "1", "skill:geology": "injected"},
    }
    assert good(program.get("/ledger/42"))["items"] == {}
    gone = [good(program.post("/ledger/42/evict", item))["evicted"] for _ in range(2)]
    assert gone == [True, False]
    assert good(program.post("/ledger/42/check", item))["injected"] is False


def test_an_episode_is_stored_and_found_by_meaning(program):
    stored = good(
        program.post(
            "/episodic/store",
            {
                "conversation_id": "42",
                "summary": "We chose the night train to Lisbon.",
                "key_decisions": ["Night train"],
                "entities": [{"type": "city", "name": "Lisbon"}],
                "agent_id": "planner",
                "started_at": "2026-05-01",
                **ALICE,
            },
        ),
        201,
    )
    asked = {"query": "How do we travel?", **ALICE}
    [found] = good(program.post("/episodic/search", asked))["results"]
    assert found.pop("score") == pytest.approx((1 + found.pop("similarity")) / 2, abs=1e-6)
    assert found == stored
    for other in ({"agent_id": "coach"}, {"as_of": "2026-04-30"}, {"user_id": "bob"}):
        assert good(program.post("/episodic/search", {**asked, **other}))["results"] == []
    assert good(program.get("/episodic/42", ALICE))["results"] == [stored]
    assert good(program.get("/episodic/42"))["results"] == []


def test_a_key_of_one_palace_writes_into_that_one(program, owner):
    bobs = client_of(owner, subject="bob")
    good(bobs.put("/working-memory/42", {"fields": {"a": 1}}))
    good(bobs.put("/namespaces/session/abc/entries/a", {"value": "x"}))
    good(bobs.post("/ledger/42/mark", {"item": "a"}))
    good(bobs.post("/episodic/store", {"conversation_id": "42", "summary": "Bob was here."}), 201)
    bob = {"user_id": "bob"}
    assert good(program.get("/working-memory/42", bob))["fields"] == {"a": 1}
    assert good(program.get("/namespaces/session/abc/entries", bob))["entries"]
    assert good(program.get("/ledger/42", bob))["items"] == {"a": "injected"}
    assert good(program.get("/episodic/42", bob))["results"]


@pytest.mark.parametrize(
    ("path", "sent", "sentence"),
    [
        ("/working-memory/42", {"fields": {"entities": "none"}}, "the field entities a list"),
        ("/working-memory/42", {"fields": {"a": 1}, "ttl_seconds": 0}, "ttl_seconds is a number"),
        ("/working-memory/42", {"scratchpad": "x"}, "It takes fields, ttl_seconds, user_id."),
        ("/working-memory/%20", {"fields": {}}, "A conversation has a name"),
        ("/namespaces/team/abc/entries/a", {"value": "x"}, "A namespace is one of session/<name>"),
        ("/namespaces/session/abc/entries/a", {"value": "x", "tags": "b"}, "tags: Expected a list"),
        (
            "/working-memory/42?user_id=bob",
            {"fields": {"a": 1}, "user_id": "alice"},
            "The address names one user_id and the body another.",
        ),
    ],
)
def test_what_cannot_be_understood_gets_a_sentence(program, path, sent, sentence):
    answer = program.put(path, sent)
    assert answer.status_code == 400
    assert sentence in answer.data["detail"]


def test_without_redis_it_is_said_to_be_away(program, settings, tmp_path):
    good(program.post("/ledger/42/mark", {"item": "a"}))
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    for answer in (
        program.get("/working-memory/42"),
        program.put("/working-memory/42", {"fields": {"a": 1}}),
        program.get("/namespaces/session/abc/entries"),
        program.post("/ledger/42/check", {"item": "a"}),
    ):
        assert (answer.status_code, answer.data["code"]) == (503, "working_memory_away")
        assert answer.headers["Retry-After"] == "5"


def test_a_key_that_only_writes_reads_nothing_by_writing(program, owner):
    address = "/working-memory/talk?user_id=ada"
    assert program.put(address, {"fields": {"plan": "secret"}, "user_id": "ada"}).status_code == 200
    writer = client_of(owner, scopes=("write",))
    answer = writer.put(address, {"fields": {}, "user_id": "ada"})
    assert (answer.status_code, answer.data["fields"]) == (200, {})
    answer = writer.put(address, {"fields": {"mood": "good"}, "user_id": "ada"})
    assert answer.data["fields"] == {"mood": "good"}
    assert program.get(address).data["fields"] == {"plan": "secret", "mood": "good"}
