"""Memory beyond the contract's cases: whose it is, both clocks, what it refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from language.storable import ID_LENGTH
from palace.models import Drawer, Fact, Palace
from palace.queries.facts import history
from palace.sdk import (
    AsyncMemory,
    BadFilter,
    BadInput,
    EmbeddingError,
    EmptyQuery,
    Memory,
    NotFoundError,
    PalaceError,
    ScopeError,
    VectorStoreError,
    WrongPalace,
)
from tests.model_server import CHAT, Status
from tests.sdk.contract_calls import add_one, texts
from tests.sdk.scripted_model import stated

LONG_AGO = datetime(2024, 1, 10, 9, 0, tzinfo=UTC)


def test_handles_say_what_they_are(bob):
    memory = Memory(bob)
    assert repr(memory) == f"Memory(owner={bob.username!r}, subject=None)"
    handles = [
        memory.working("session/a", user_id="ada"),
        memory.conversation("42"),
        memory.episodes(user_id="ada"),
        AsyncMemory("bob").working("session/a"),
    ]
    assert list(map(repr, handles)) == [
        "WorkingMemory('session/a', user_id='ada')",
        "ConversationMemory('42', user_id=None)",
        "EpisodicMemory(user_id='ada')",
        "AsyncWorkingMemory('session/a', user_id=None)",
    ]


def test_an_owner_sees_nothing_of_another(plain, bob):
    key, bobs = add_one(plain, "User likes Python"), Memory(bob)
    assert bobs.get(key) is None
    assert bobs.search("Python", user_id="alice") == {"results": []}
    assert bobs.history(key) == []
    for call in (bobs.delete, lambda key: bobs.update(key, "mine")):
        with pytest.raises(NotFoundError):
            call(key)
    bobs.reset()
    assert bobs.delete_all(user_id="alice") == 0
    assert plain.get(key)


def test_one_bound_to_a_palace_knows_no_other(plain, alice):
    kept = plain.add("User likes Python", user_id="anna")["results"][0]["id"]
    bound = Memory(alice, subject="bert")
    assert bound.get(kept) is None
    assert bound.history(kept) == []
    for call in (bound.delete, lambda key: bound.update(key, "Taken over")):
        with pytest.raises(NotFoundError):
            call(kept)
    for call in (
        lambda: bound.get_all(user_id="anna"),
        lambda: bound.working("session/abc", user_id="anna"),
        lambda: bound.conversation("42", user_id="anna"),
        lambda: bound.episodes(user_id="anna"),
    ):
        with pytest.raises(WrongPalace, match="Leave user_id out"):
            call()
    bound.add("User likes Rust")
    bound.conversation("42").put({"a": 1})
    assert plain.conversation("42", user_id="bert").get() == {"a": 1}
    assert [item["user_id"] for item in bound.get_all()["results"]] == ["bert"]
    bound.reset()
    assert bound.get_all() == {"results": []}
    assert plain.get(kept)["memory"] == "User likes Python"


@pytest.mark.parametrize("subject", [" ", 5, ["anna"]])
def test_one_is_bound_to_nothing_blank(alice, subject):
    with pytest.raises(ScopeError, match="subject is a user_id"):
        Memory(alice, subject=subject)


def test_one_bound_to_a_long_id_has_its_palace(plain, alice):
    anna = "anna" * 100
    bound = Memory(alice, subject=anna)
    kept = bound.add("User likes Rust")["results"][0]["id"]
    assert bound.get_all(user_id=anna) == plain.get_all(user_id=anna)
    assert bound.get(kept)


@pytest.mark.parametrize(
    "key", ["", "fake-id", "0", None, 7, "7e1f0a52-3a5c-4c6b-9f0e-5b8f2f1c9d10", "a\0b"]
)
def test_an_id_of_nothing_is_not_found(plain, key):
    assert plain.get(key) is None
    assert plain.history(key) == []
    for call in (plain.delete, lambda key: plain.update(key, "text")):
        with pytest.raises(NotFoundError, match="There is no memory") as caught:
            call(key)
        assert caught.value.code == "not_found"
        assert isinstance(caught.value, PalaceError)


def test_reading_about_somebody_unknown_makes_no_palace(plain):
    assert plain.search("Python", user_id="nobody") == {"results": []}
    assert plain.get_all(user_id="nobody") == {"results": []}
    assert plain.delete_all(user_id="nobody") == 0
    assert not Palace.objects.filter(subject="nobody").exists()


def test_without_a_user_it_is_the_owners_own_palace(plain, alice):
    key = add_one(plain, "User likes Python", agent_id="helper")
    assert Palace.objects.own(alice) == Fact.objects.get(memory=key).palace
    item = plain.get(key)
    assert (item["user_id"], item["agent_id"], item["run_id"]) == (None, "helper", None)


def test_messages_are_kept_to_the_byte_in_their_conversation(plain, queued):
    texts = ["  I live in Porto.\r\n", "\tNoted. \n"]
    roles = ["user", "assistant"]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    plain.add(messages, user_id="alice", run_id="r1", timestamp="2024-01-10T09:00:00Z")
    drawers = list(Drawer.objects.order_by("position"))
    assert [(drawer.role, drawer.text) for drawer in drawers] == list(
        zip(roles, texts, strict=True)
    )
    assert {(drawer.conversation, drawer.said_at) for drawer in drawers} == {("r1", LONG_AGO)}
    assert queued() == ["mine_room"]


def test_one_conversation_goes_on_where_its_run_is_named(plain):
    plain.add("User likes Python", run_id="r1")
    plain.add("User lives in NYC", run_id="r1")
    assert [drawer.position for drawer in Drawer.objects.order_by("pk")] == [0, 1]


def test_who_speaks_by_name_is_the_subject(plain):
    messages = [{"role": "user", "name": "Ana", "content": "I live in Porto."}]
    plain.add(messages, user_id="alice")
    [item] = plain.get_all(user_id="alice")["results"]
    assert item["subject"] == "Ana"


def test_an_item_says_all_there_is_to_say(plain):
    metadata = {"tag": "home", "nested": {"a": [1, None, True]}}
    scope = {"user_id": "alice", "agent_id": "helper", "run_id": "r1"}
    [event] = plain.add("User lives in NYC", metadata=metadata, timestamp=LONG_AGO, **scope)[
        "results"
    ]
    [item] = plain.search("home town", **scope)["results"]
    assert {key: item[key] for key in scope} == scope
    assert item["metadata"] == event["metadata"] == metadata
    assert (item["subject"], item["predicate"], item["object"]) == ("User", "lives_in", "NYC")
    assert (item["category"], item["valid_to"]) == ("home/place", None)
    assert datetime.fromisoformat(item["valid_from"]) == LONG_AGO
    assert 0 < item["score"] < 1
    assert "score" not in plain.get(item["id"])
    json.dumps(item)


def test_a_memory_keeps_its_beginning_while_it_changes(plain):
    key = add_one(plain, "User lives in NYC")
    first = plain.get(key)
    second = plain.update(key, "User lives in Queens")
    assert second["created_at"] == first["created_at"] == first["updated_at"]
    assert second["updated_at"] > first["updated_at"]


def test_results_come_best_first_and_lists_newest_first(plain):
    for text in ("User likes Python", "User has a cat called Miso", "User lives in NYC"):
        plain.add(text, user_id="alice")
    scores = [item["score"] for item in plain.search("cats", user_id="alice")["results"]]
    assert scores == sorted(scores, reverse=True)
    newest, *_ = plain.get_all(user_id="alice", limit=1)["results"]
    assert "NYC" in newest["memory"]


def test_both_clocks_are_asked_on_their_own(plain):
    add_one(plain, "User lives in NYC", user_id="alice")
    Fact.objects.update(valid_from=LONG_AGO)
    believed = datetime.now(UTC)
    plain.add("User moved to San Francisco", user_id="alice")
    year_later = (LONG_AGO + timedelta(days=365)).isoformat()

    def homes(**clocks):
        found = plain.get_all(user_id="alice", **clocks)["results"]
        searched = plain.search("home", user_id="alice", **clocks)["results"]
        assert texts({"results": found}) == texts({"results": searched})
        return [item["object"] for item in found]

    assert homes() == ["San Francisco"]
    assert homes(true_at=year_later) == ["NYC"]
    assert homes(known_at=believed) == ["NYC"]
    assert homes(true_at="2023-01-01") == []
    assert homes(true_at=year_later, known_at="2024-06-01") == []


def test_what_was_said_as_past_is_found_by_its_id_and_its_time(plain):
    key = add_one(plain, "I lived in Paris until 2020.")
    assert plain.get(key)["object"] == "Paris"
    assert plain.get_all(user_id="alice") == {"results": []}
    assert plain.get_all(user_id="alice", true_at="2019-06-01")["results"]
    with pytest.raises(NotFoundError):
        plain.delete(key)


def test_what_coexists_was_added(plain, model):
    first = stated("User finds TypeScript's types great", "opinion", "great", aspect="types")
    second = stated("User finds TypeScript's builds slow", "opinion", "slow", aspect="builds")
    plain_answers = [{"facts": [first]}, {"facts": [second]}]
    judged = {"judgements": [{"new": 0, "verdict": "COEXIST"}]}
    model.script([json.dumps(answer) for answer in (*plain_answers, judged)])
    plain.add("TypeScript's types are great.", user_id="alice")
    [event] = plain.add("But it builds slowly.", user_id="alice")["results"]
    assert event["event"] == "ADD"
    assert len(plain.get_all(user_id="alice")["results"]) == 2


def test_a_history_says_who_and_why(plain, alice):
    key = add_one(plain, "User likes Python", user_id="alice", agent_id="helper")
    plain.delete(key)
    assert {record["by"] for record in plain.history(key)} == {"sdk"}
    palace = Palace.objects.get(owner=alice, subject="alice")
    assert {event.agent for event in history(palace, Fact.objects.get().memory)} == {"helper"}


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        (7, "messages is a text, or a list"),
        ({"role": "user", "content": "x"}, "messages is a text, or a list"),
        (["x"], "Message 0 is “x”; give an object"),
        ([{"role": "user"}], "Message 0 has no content"),
        ([{"role": "user", "content": ["x"]}], "Message 0 has no content"),
        ([{"role": "user", "content": "a\0b"}], "without NUL"),
        ("a\ud800", "half of a surrogate pair"),
        ([{"content": "x"}], "Message 0 has the role None; it is one of user, assistant"),
        ([{"role": ["user"], "content": "x"}], "Message 0 has the role"),
        ([{"role": "user", "content": "x"}, {"role": "boss", "content": "x"}], "Message 1 has"),
        ([{"role": "user", "name": 7, "content": "x"}], "has the name 7"),
    ],
)
def test_messages_that_cannot_be_kept_get_a_sentence(plain, messages, sentence):
    with pytest.raises(BadInput, match=sentence):
        plain.add(messages, user_id="alice")
    assert not Drawer.objects.exists()


@pytest.mark.parametrize("query", [None, 5, b"coffee", [], True])
def test_a_question_is_text(plain, query):
    with pytest.raises(BadInput, match="query is a question as text, not"):
        plain.search(query, user_id="alice")
    with pytest.raises(BadInput, match="query is a question as text, not"):
        plain.working("session/abc").search(query)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.add("x", user_id="a", metadata=[1]), "metadata is an object"),
        (lambda m: m.add("x", user_id="a", metadata={1: 1}), "metadata is an object"),
        (lambda m: m.add("x", user_id="a", metadata={"a": {1}}), "cannot be written as JSON"),
        (lambda m: m.add("x", user_id="a", metadata={"a": float("nan")}), "written as JSON"),
        (lambda m: m.add("x", user_id="a", metadata={"a": "\0"}), "cannot be stored"),
        (lambda m: m.add("x", user_id="a", metadata={"a": "x" * 100_000}), "up to 100000"),
        (lambda m: m.add("x", user_id="a", prompt=7), "prompt is a text with instructions"),
        (lambda m: m.add("x", user_id="a", judging_prompt="\0"), "judging_prompt has up to 100000"),
        (lambda m: m.add("x", user_id="a", timestamp="noon"), "timestamp is a time such as"),
        (lambda m: m.get_all(user_id="a", true_at=7), "true_at is a time such as"),
        (lambda m: m.search("x", user_id="a", known_at="7"), "known_at is a time such as"),
        (lambda m: m.search("x", user_id="a", limit=0), "limit is a number from 1 to 10000"),
        (lambda m: m.get_all(user_id="a", limit="3"), "limit is a number from 1 to 10000"),
        (lambda m: m.update(m.first, ""), "A memory says something"),
        (lambda m: m.update(m.first, 7), "A memory says something"),
        (lambda m: m.update(m.first, "x" * 10_001), "up to 10000 characters"),
    ],
)
def test_arguments_that_make_no_sense_get_a_sentence(plain, call, sentence):
    plain.first = add_one(plain, "User likes Python", user_id="a")
    with pytest.raises(BadInput, match=sentence) as caught:
        call(plain)
    assert caught.value.code == "bad_input"


def test_a_filter_of_add_that_makes_no_sense_gets_a_sentence(plain):
    with pytest.raises(BadFilter, match="is no operator of filters"):
        plain.add("x", user_id="a", filters={"field": "tag", "operator": "is", "value": 1})
    assert not Drawer.objects.exists()


def test_a_filter_of_add_may_hold_what_json_cannot_write(plain):
    before = {"field": "created_at", "operator": "lt", "value": datetime.now(UTC)}
    among = {"field": "tag", "operator": "in", "value": {"work", "home"}}
    for filters in (before, {"AND": (before, among)}, {"NOT": among}):
        plain.add("User likes hiking", user_id="a", metadata={"tag": "work"}, filters=filters)
    assert len(plain.get_all(user_id="a")["results"]) == 3


def test_a_blank_question_gets_a_sentence(plain):
    add_one(plain, "User likes Python")
    with pytest.raises(EmptyQuery):
        plain.search(" \0 ", user_id="alice")
    with pytest.raises(EmptyQuery):
        plain.search(" ", user_id="nobody who was ever heard of")


def test_ids_of_any_length_and_letters_are_distinguished(plain):
    long = "é" * ID_LENGTH
    for tail in ("a", "b"):
        add_one(plain, "User likes Python", user_id=long + tail, run_id=long + tail)
    assert len(plain.get_all(user_id=long + "a")["results"]) == 1
    assert plain.get_all(user_id=long + "a", run_id=long + "b") == {"results": []}


def test_without_the_embedder_nothing_is_lost_and_searching_says_so(plain, settings, model_server):
    settings.EMBEDDING_PROVIDER = model_server.base_url
    settings.EMBEDDING_MODEL = "test-embedder"
    settings.EMBEDDING_API_KEY = "a-key"
    settings.LLM_MAX_RETRIES = 0
    model_server.script([Status(500)] * 50, path="/v1/embeddings")
    add_one(plain, "User likes Python")
    assert len(plain.get_all(user_id="alice")["results"]) == 1
    with pytest.raises(EmbeddingError) as caught:
        plain.search("Python", user_id="alice")
    assert caught.value.code == "embedding_error"
    model_server.recover("/v1/embeddings")
    assert plain.search("Python", user_id="alice") == {"results": []}, "It has no vector yet."


@pytest.mark.parametrize("failure", [Status(500), Status(401), "no JSON"])
def test_a_model_that_fails_costs_no_message(plain, model, failure):
    model.script([failure] * 4)
    assert plain.add("User likes Python", user_id="alice")["results"]
    assert model.requests_to(CHAT)


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_lost_is_an_error_once(plain):
    key = add_one(plain, "User likes Python")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    other.close()
    with pytest.raises(VectorStoreError, match="The database does not respond") as caught:
        plain.get(key)
    assert caught.value.code == "vector_store_error"
    assert plain.get(key)
