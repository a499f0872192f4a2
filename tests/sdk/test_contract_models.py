"""The behavioural cases of the fact API's contract, each under its number and name: the graph,
errors and configuration.
"""

from __future__ import annotations

import pytest

from llm.models import Usage
from palace.models import Entity, Fact
from palace.sdk import Memory, ScopeError
from palace.storage.indexing.fact_vectors import PgVectorIndex
from settings_app.models import MemorySettings
from tests.model_server import CHAT, EMBEDDINGS, Json, Status, embedding_of
from tests.sdk.contract_calls import NEEDED, TALK, add_one, texts

# Graph memory


def test_33_entity_extraction(memory):
    memory.add("My friend Alice works at Google.", user_id="alice")
    kinds = dict(Entity.objects.values_list("name", "kind"))
    assert (kinds["Alice"], kinds["Google"]) == ("person", "organisation")


def test_34_relationship_extraction(memory):
    memory.add("My friend Alice works at Google.", user_id="alice")
    edge = Fact.objects.get(object_entity__name="Google")
    assert (edge.subject.name, edge.predicate) == ("Alice", "works_at")


def test_35_graph_enhanced_search(memory):
    memory.add("My friend Alice works at Google. She plays the cello.", user_id="alice")
    for language in ("French", "Italian", "Portuguese", "German", "Spanish"):
        memory.add(f"I speak {language}", user_id="alice")
    memory.add("User works in tech", user_id="alice")
    named, unnamed = (
        texts(memory.search(f"Which languages are {asked}?", user_id="alice", limit=6))
        for asked in ("spoken in tech companies like Google", "spoken in tech companies")
    )
    assert len(named) == len(unnamed) == 6
    # Not by its words, but by way of Alice, who is connected to what the question names.
    assert "plays the cello" in " ".join(named)
    assert "plays the cello" not in " ".join(unnamed)


# Error handling


def test_36_llm_failure_graceful(plain, model):
    model.script([Status(500)] * 4)
    answer = plain.add("User likes Python", user_id="alice")
    assert [event["new_memory"] for event in answer["results"]] == ["User likes Python"]
    assert model.requests_to(CHAT)


def test_37_partial_failure_continues(plain, model, settings):
    settings.EMBEDDING_PROVIDER = model.base_url
    settings.EMBEDDING_MODEL = "test-embedder"
    settings.EMBEDDING_DIMENSIONS = 8
    settings.EMBEDDING_API_KEY = "a-key"

    def but_not_cats(request):
        inputs = request.body["input"]
        inputs = [inputs] if isinstance(inputs, str) else inputs
        if any("cat" in text for text in inputs):
            return Status(400, "This text cannot be embedded.")
        data = [
            {"object": "embedding", "index": at, "embedding": embedding_of(text, 8)}
            for at, text in enumerate(inputs)
        ]
        return Json({"object": "list", "data": data, "model": "test-embedder", "usage": None})

    model.script([but_not_cats] * 12, path=EMBEDDINGS)
    answer = plain.add(TALK, user_id="alice")
    assert len(answer["results"]) == 3
    assert len(plain.get_all(user_id="alice")["results"]) == 3
    found = texts(plain.search("Python", user_id="alice"))
    assert found == ["User likes Python", "User lives in NYC"], "The third waits for its vector."


@pytest.mark.parametrize(
    "call",
    [
        lambda memory, **scope: memory.add("User likes Python", **scope),
        lambda memory, **scope: memory.search("Python", **scope),
        lambda memory, **scope: memory.get_all(**scope),
        lambda memory, **scope: memory.delete_all(**scope),
    ],
    ids=["add", "search", "get_all", "delete_all"],
)
def test_38_invalid_scope_rejected(plain, call):
    with pytest.raises(ScopeError, match=NEEDED):
        call(plain)
    for blank in ("", "  ", 7):
        with pytest.raises(ScopeError, match="user_id is text that is not blank"):
            call(plain, user_id=blank, agent_id="helper")


# Custom configuration


def test_39_custom_extraction_prompt(plain, model):
    plain.add("User likes Python", user_id="alice")
    plain.add("User lives in NYC", user_id="alice", prompt="Note only animals.")
    systems = [
        request.body["messages"][0]["content"]
        for request in model.requests_to(CHAT)
        if "<conversation>" in request.body["messages"][-1]["content"]
    ]
    assert systems[0].startswith("You note down what is worth remembering")
    assert systems[1].startswith("Note only animals.")


def test_39_custom_judging_prompt(plain, model):
    plain.add("User likes Python", user_id="alice")
    plain.add("User likes Python", user_id="alice", judging_prompt="Keep everything.")
    plain.add("User lives in NYC", user_id="alice")
    systems = [
        request.body["messages"][0]["content"]
        for request in model.requests_to(CHAT)
        if "<facts>" in request.body["messages"][-1]["content"]
    ]
    assert systems[0].startswith("Keep everything.")
    assert systems[1].startswith("You keep a list of facts true.")


def test_40_custom_llm_provider(plain, alice, model_server):
    """One's own, as chosen in the settings: any that speaks OpenAI's protocol."""
    chosen = MemorySettings(owner=alice, provider=model_server.base_url, model="my-model")
    chosen.set_key("my-key")
    chosen.save()
    model_server.answer('{"facts": []}')
    assert plain.add("User likes Python", user_id="alice") == {"results": []}
    [request] = model_server.requests_to(CHAT)
    assert request.body["model"] == "my-model"
    assert request.headers["authorization"] == "Bearer my-key"
    assert Usage.objects.get(purpose=Usage.Purpose.MEMORY_EXTRACT).owner == alice


def test_41_custom_vector_store(alice, qdrant):
    """Postgres and Qdrant both find it; nothing of it is in Postgres where Qdrant is chosen."""
    in_postgres, in_qdrant = (
        Memory(alice, vector_index=PgVectorIndex()),
        Memory(alice, vector_index=qdrant),
    )
    add_one(in_qdrant, "User likes Python", user_id="q")
    add_one(in_postgres, "User likes Python", user_id="p")
    for memory, user in ((in_qdrant, "q"), (in_postgres, "p")):
        assert texts(memory.search("languages", user_id=user)) == ["User likes Python"]
    assert in_postgres.search("languages", user_id="q") == {"results": []}


def test_42_default_config_works(alice):
    memory = Memory()
    assert memory.owner == alice
    add_one(memory, "User likes Python", user_id="bob")
    assert texts(memory.get_all(user_id="bob")) == ["User likes Python"]


@pytest.mark.parametrize("answer", [Status(500), '{"memories": ["User likes Python"]}', "[4711]"])
def test_36_what_the_model_failed_at_is_said(plain, model, answer):
    model.script([answer] * 4)
    answered = plain.add("I like Python.", user_id="alice")
    assert [event["new_memory"] for event in answered["results"]] == ["User likes Python"]
    assert answered["extraction"] == "degraded"
    assert answered["notes"][0].startswith("Facts were found without the language model.")
