"""The behavioural cases of the fact API's contract, through HTTP; each names its numbers."""

from __future__ import annotations

import hashlib
import json

import kombu.pools
import pytest
from celery import current_app
from django.utils import timezone

from api.rest import base
from palace.models import Drawer, Fact, IdempotentWrite
from tests.api.rest.conftest import client_of
from tests.model_server import CHAT, Status
from tests.sdk.scripted_model import play

NEEDED = "At least one of user_id, agent_id, or run_id must be provided"
NOWHERE = "7c7b1d5e-9d4c-4d53-9ad6-0e3a3f1c0f2b"


def where(field, operator, value):
    return {"field": field, "operator": operator, "value": value}


def say(program, text, **more):
    """The events that a text makes."""
    answer = program.post("/v1/memories/", {"user_id": "alice", "messages": text, **more})
    assert answer.status_code == 200, answer.content
    return answer.data["results"]


def listed(program, **asked):
    answer = program.get("/v1/memories/", {"user_id": "alice", **asked})
    assert answer.status_code == 200, answer.content
    return [item["memory"] for item in answer.data["results"]]


def found(program, query, **asked):
    answer = program.post("/v1/memories/search/", {"user_id": "alice", "query": query, **asked})
    assert answer.status_code == 200, answer.content
    return answer.data["results"]


def test_memories_are_added_read_found_changed_and_deleted(program):
    """1 to 12, 14, 23 to 26."""
    assert say(program, "hello") == say(program, []) == []
    [event] = say(program, "My name is Bob")
    assert (event["event"], event["new_memory"]) == ("ADD", "User's name is Bob")
    [event] = say(program, "User likes Python", metadata={"tag": "work"})
    address = f"/v1/memories/{event['id']}/"
    assert say(program, "User likes Python")[0]["event"] == "NONE"
    [first] = found(program, "programming languages", limit=1)
    assert (first["memory"], first["metadata"]) == ("User likes Python", {"tag": "work"})
    assert first["score"] > 0.5
    in_address = program.get("/v1/memories/search/", {"q": "programming", "user_id": "alice"})
    assert in_address.data["results"][0]["memory"] == "User likes Python"
    item = program.get(address).data
    assert (item["id"], item["memory"], item["user_id"]) == (event["id"], first["memory"], "alice")
    written = program.put(address, {"text": "new text"})
    assert written.data["hash"] == hashlib.md5(b"new text", usedforsecurity=False).hexdigest()
    changed = {"changed": ["memory", "object", "stance", "sources"], "note": written.data["note"]}
    assert {**program.get(address).data, **changed} == written.data
    assert "could not be read as one statement" in written.data["note"]
    assert listed(program) == ["new text", "User's name is Bob"]
    assert program.delete(address).status_code == 204
    assert program.get(address).status_code == program.delete(address).status_code == 404
    lines = program.get(f"{address}history/").data
    assert [(line["event"], line["is_deleted"]) for line in lines] == [
        ("ADD", False),
        ("UPDATE", False),
        ("DELETE", True),
    ]
    gone = program.delete("/v1/memories/?user_id=alice")
    assert gone.data == {"deleted": 1, "kept": [], "kept_total": 0}
    assert listed(program) == []


def test_recall_finds_a_fact_before_its_words_are_mined(program):
    say(program, "I live in Leeds")
    assert not Drawer.objects.exclude(mined_at=None).exists()

    def block(query):
        return program.post("/recall", {"user_id": "alice", "query": query}).data["context"]

    assert "User lives in Leeds" in block("Where do I live?")
    assert block("What is the airspeed velocity of an unladen swallow?") == ""


def test_what_is_new_is_judged_beside_what_is_known(program):
    """15 to 18."""
    talk = [
        {"role": "user", "content": "User lives in NYC. User works in tech. User is vegetarian."},
        {"role": "assistant", "content": "And what do you do there?"},
    ]
    events = say(program, talk, timestamp="2024-03-01")
    assert [event["event"] for event in events] == ["ADD"] * 3
    moved = say(program, "User moved to San Francisco. I have a cat called Miso.")
    assert sorted(event["event"] for event in moved) == ["ADD", "UPDATE"]
    say(program, "User works at Google as a senior engineer")
    say(program, "User started eating meat again")
    held = " ".join(listed(program))
    assert all(words in held for words in ("San Francisco", "Google", "senior engineer", "Miso"))
    assert "NYC" not in held
    assert "User is vegetarian" not in held
    assert "User lives in NYC" in listed(program, true_at="2024-06-01")
    assert listed(program, known_at="2024-06-01") == []


def test_scopes_are_kept_apart(program):
    """19, 20, 22."""
    say(program, "User likes Python", agent_id="helper", run_id="1")
    assert listed(program) == listed(program, agent_id="helper", run_id="1")
    assert listed(program, agent_id="other") == listed(program, run_id="2") == []
    for asked in ({"user_id": "bob"}, {"agent_id": "helper"}):
        assert program.get("/v1/memories/", asked).data == {"results": []}
        assert program.post("/v1/memories/search/", {"query": "Python", **asked}).data == {
            "results": []
        }


@pytest.mark.parametrize(
    "ask",
    [
        lambda program, **scope: program.post("/v1/memories/", {"messages": "Hi", **scope}),
        lambda program, **scope: program.get("/v1/memories/", scope),
        lambda program, **scope: program.delete("/v1/memories/"),
        lambda program, **scope: program.get("/v1/memories/search/", {"q": "Hi", **scope}),
        lambda program, **scope: program.post("/v1/memories/search/", {"query": "Hi", **scope}),
        lambda program, **scope: program.post("/v1/entities/", scope),
        lambda program, **scope: program.get("/v1/entities/Miso/relations/", scope),
    ],
)
def test_without_a_scope_it_is_said(program, ask):
    """21, 38."""
    answer = ask(program)
    assert (answer.status_code, answer.data["code"]) == (400, "scope_missing")
    assert answer.data["detail"] == NEEDED


@pytest.fixture
def tagged(program):
    """Asks by a filter; answers with the tags of what was found."""
    for text, tag, level in (
        ("User likes Python", "work", 3),
        ("I have a cat called Miso", "home", 1),
        ("User lives in NYC", "place", 2),
    ):
        say(program, text, metadata={"tag": tag, "level": level})

    def tagged(filters):
        asked = {"user_id": "alice", "filters": json.dumps(filters)}
        items = program.get("/v1/memories/", asked).data["results"]
        by_body = found(program, "Tell me everything", filters=filters)
        tags = sorted(item["metadata"]["tag"] for item in items)
        assert tags == sorted(item["metadata"]["tag"] for item in by_body)
        return tags

    return tagged


def test_filters_narrow_what_is_found(tagged):
    """27 to 32."""
    assert tagged(where("tag", "eq", "work")) == ["work"]
    assert tagged(where("tag", "in", ["work", "home"])) == ["home", "work"]
    assert tagged({"AND": [where("tag", "ne", "place"), where("level", "gte", 2)]}) == ["work"]
    assert tagged({"OR": [where("tag", "eq", "home"), where("level", "gt", 2)]}) == ["home", "work"]
    assert tagged({"NOT": where("tag", "eq", "work")}) == ["home", "place"]
    assert tagged(where("memory", "contains", "Python")) == ["work"]


def test_relations_are_followed_as_far_as_the_caller_says(program):
    say(program, "My friend Alice works at Google.")
    say(program, "My sister Ines works at Google.")

    def reached(**how):
        answer = program.get("/v1/entities/Alice/relations/", {"user_id": "alice", **how})
        edges = [(each["source"], each["target"], each["hops"]) for each in answer.data["results"]]
        assert [edge[2] for edge in edges] == sorted(edge[2] for edge in edges)
        return {edge for edge in edges if edge[1] == "Google"}

    assert reached() == reached(hops=1) == {("Alice", "Google", 1)}
    assert reached(hops=2) == {("Alice", "Google", 1), ("Ines", "Google", 2)}
    assert reached(hops=3, limit=1) <= {("Alice", "Google", 1)}
    for hops in (0, 4, "far"):
        refused = program.get("/v1/entities/Alice/relations/", {"user_id": "alice", "hops": hops})
        assert (refused.status_code, list(refused.data["errors"])) == (400, ["hops"])


def test_entities_and_what_connects_them(program):
    """33, 34."""
    say(program, "My friend Alice works at Google.", agent_id="helper", timestamp="2024-03-01")
    answer = program.post("/v1/entities/", {"user_id": "alice"})
    kinds = {entity["name"]: entity["type"] for entity in answer.data["results"]}
    assert (kinds["Alice"], kinds["Google"]) == ("person", "organisation")
    narrowed = {"user_id": "alice", "agent_id": "other"}
    assert program.get("/v1/entities/", narrowed).data == {"results": []}
    asked = {"user_id": "alice", "type": "organisation"}
    answer = program.get("/v1/entities/Google/relations/", asked)
    assert answer.data["entity"]["name"] == "Google"
    [edge] = answer.data["results"]
    assert (edge["source"], edge["relation"], edge["target"]) == ("Alice", "works_at", "Google")
    assert edge["hops"] == 1
    before = {**asked, "known_at": "2024-01-01"}
    assert program.get("/v1/entities/Google/relations/", before).data["results"] == []
    story = program.get("/v1/entities/alice/timeline/", {"user_id": "alice"}).data["results"]
    assert "works_at" in [line["predicate"] for line in story]
    assert all(line["drawers"] for line in story)
    assert program.get("/v1/entities/Nobody/timeline/", asked).status_code == 404


def test_a_model_reads_as_instructed_and_is_done_without(program, settings, model_server):
    """36, 39."""
    settings.LLM_PROVIDER, settings.LLM_MODEL = model_server.base_url, "small-model"
    settings.LLM_API_KEY, settings.LLM_MAX_RETRIES = "a-key", 0
    model_server.answer(play)
    say(program, "User lives in NYC", prompt="Note only animals.", judging_prompt="Keep all.")
    [system] = {
        request.body["messages"][0]["content"] for request in model_server.requests_to(CHAT)
    }
    assert system.startswith("Note only animals.")
    model_server.script([Status(500)] * 4)
    assert [event["new_memory"] for event in say(program, "User likes Python")] == [
        "User likes Python"
    ]


def test_with_the_vector_store_away_all_but_search_works(program, settings):
    settings.VECTOR_STORE, settings.VECTOR_STORE_URL = "qdrant", "http://127.0.0.1:1"
    say(program, "User lives in NYC")
    assert len(program.get("/v1/memories/", {"user_id": "alice"}).data["results"]) == 1
    answer = program.get("/v1/memories/search/", {"q": "home", "user_id": "alice"})
    assert (answer.status_code, answer.data["code"]) == (503, "vector_store_error")
    assert "127.0.0.1" not in answer.data["detail"]


def test_reset_leaves_no_memory_and_takes_a_key_that_may(program, owner):
    """13."""
    keys = [say(program, "User likes Python", user_id=user)[0]["id"] for user in ("alice", "bob")]
    refused = client_of(owner, scopes=("read", "write")).post("/v1/reset/")
    assert (refused.status_code, refused.data["code"]) == (403, "missing_scope")
    assert client_of(owner, subject="bob").post("/v1/reset/").status_code == 204
    assert listed(program) == ["User likes Python"], "That key opens Bob's palace only."
    assert program.post("/v1/reset/").status_code == 204
    for key in keys:
        assert program.get(f"/v1/memories/{key}/history/").data == []
    assert listed(program) == []


def test_nobody_writes_over_what_they_have_not_seen(program):
    address = f"/v1/memories/{say(program, 'User likes Python')[0]['id']}/"
    seen = program.get(address).headers["ETag"]
    assert program.get(address, headers={"If-None-Match": seen}).status_code == 304
    written = program.put(address, {"text": "User likes Rust"}, headers={"If-Match": seen})
    assert written.headers["ETag"] == program.get(address).headers["ETag"] != seen
    for answer in (
        program.put(address, {"text": "User likes Go"}, headers={"If-Match": seen}),
        program.delete(address, headers={"If-Match": seen}),
    ):
        assert (answer.status_code, answer.data["code"]) == (412, "changed_meanwhile")
    assert listed(program) == ["User likes Rust"]
    assert program.delete(address, headers={"If-Match": written.headers["ETag"]}).status_code == 204


def by_id(program, key):
    """All that can be asked by an id, which changes nothing where it is not found."""
    address = f"/v1/memories/{key}/"
    yield program.get(address)
    yield program.put(address, {"text": "Taken over"})
    yield program.delete(address)


def test_an_id_of_another_palace_is_as_one_of_nothing(program, owner, strangers_program):
    key = say(program, "User likes Python")[0]["id"]
    others = (strangers_program, client_of(owner, subject="bob"), client_of(owner, subject=""))
    for other in others:
        for theirs, nothings in zip(by_id(other, key), by_id(other, NOWHERE), strict=True):
            assert theirs.status_code == nothings.status_code == 404
            assert theirs.data["code"] == nothings.data["code"] == "not_found"
            assert str(theirs.data["detail"]).replace(key, NOWHERE) == nothings.data["detail"]
        assert other.get(f"/v1/memories/{key}/history/").data == []
    assert listed(program) == ["User likes Python"]


def test_a_key_of_one_palace_means_it_and_opens_no_other(program, owner):
    bobs, own = client_of(owner, subject="bob"), client_of(owner, subject="")
    assert bobs.post("/v1/memories/", {"messages": "User likes Rust"}).status_code == 200
    assert own.post("/v1/memories/", {"messages": "User likes Go"}).status_code == 200
    [item] = bobs.get("/v1/memories/").data["results"]
    assert (item["memory"], item["user_id"]) == ("User likes Rust", "bob")
    assert listed(program, user_id="bob") == ["User likes Rust"]
    [item] = own.get("/v1/memories/").data["results"]
    assert (item["memory"], item["user_id"]) == ("User likes Go", None)
    for program_of_one in (bobs, own):
        for answer in (
            program_of_one.get("/v1/memories/?user_id=alice"),
            program_of_one.post("/v1/memories/", {"messages": "Hi", "user_id": "alice"}),
            program_of_one.post("/v1/entities/", {"user_id": "alice"}),
        ):
            assert (answer.status_code, answer.data["code"]) == (403, "wrong_palace")


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"messages": [{"role": "user"}]}, "Message 0 has no content"),
        ({"messages": {"role": "user", "content": "Hi"}}, "messages is a text, or a list"),
        ({"messages": None}, "messages: This field may not be null."),
        ({"messages": "Hi", "filters": {"field": "memory"}}, "is no filter. Write an object"),
        ({"messages": "Hi", "timestamp": "yesterday"}, "timestamp: This is not a time; write one"),
        ({"messages": "Hi", "user_id": 7}, "user_id: Not a valid string."),
        ({"messages": "Hi", "user_id": " "}, "user_id: This field may not be blank."),
        ({"messages": "Hi", "metadata": [1]}, "metadata: Expected a dictionary"),
    ],
)
def test_what_cannot_be_understood_gets_a_sentence(program, sent, sentence):
    answer = program.post("/v1/memories/", {"user_id": "alice", **sent})
    assert answer.status_code == 400
    assert sentence in answer.data["detail"]
    assert listed(program) == []


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("q=Hi&filters={", "filters is not JSON: Expecting property name"),
        ("q=Hi&filters=[]", "[] is no filter."),
        ("q=Hi&known_at=2024-01-31T09:30:00+01:00", "known_at: This is not a time"),
        ("q=Hi&limit=0", "limit: Ensure this value is greater than or equal to 1."),
        ("", "query: This field is required"),
        ("q=%00", "q: Null characters are not allowed."),
    ],
)
def test_an_address_that_cannot_be_understood_gets_a_sentence(program, asked, sentence):
    answer = program.get(f"/v1/memories/search/?user_id=alice&{asked}")
    assert answer.status_code == 400
    assert sentence in answer.data["detail"]


def test_one_that_died_files_nothing_twice(program):
    fact = {"user_id": "alice", "messages": "User likes Python"}
    sent = {"path": "/v1/memories/", "data": fact, "HTTP_IDEMPOTENCY_KEY": "first"}
    first = program.post(**sent)
    assert program.post(**sent).json() == first.json()
    # It died after it had filed, and before it had read what was filed.
    Fact.objects.all().delete()
    Drawer.objects.update(facts_read_at=None)
    IdempotentWrite.objects.update(status=None, claimed_at=timezone.now() - base.GIVEN_UP_AFTER)
    again = program.post(**sent).data["results"]
    assert [event["new_memory"] for event in again] == ["User likes Python"]
    assert Drawer.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_with_the_queue_away_what_was_said_is_found_at_once(program, monkeypatch, tmp_path):
    nowhere = kombu.Connection(f"redis+socket://{tmp_path}/nobody.sock")
    monkeypatch.setattr(current_app.amqp, "_producer_pool", kombu.pools.producers[nowhere])
    program.post("/v1/memories/", {"user_id": "ada", "messages": "I live in Lisbon."})
    found = program.post("/search", {"query": "where?", "user_id": "ada"}).json()["results"]
    assert [each["content"] for each in found] == ["I live in Lisbon."]
