"""Memory.from_config: what a dictionary may name, and what is refused."""

from __future__ import annotations

import asyncio

import pytest

from palace.models import FactVector
from palace.sdk import AsyncMemory, BadInput, Memory, SetupError, VectorStoreError
from palace.sdk.configuration import Configuration
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings
from tests.model_server import CHAT
from tests.sdk.contract_calls import add_one, texts
from tests.sdk.scripted_model import play

VARIABLES = (
    "OPENAI_API_KEY OPENAI_BASE_URL ANTHROPIC_API_KEY GOOGLE_API_KEY AZURE_OPENAI_API_KEY "
    "OPENROUTER_API_KEY QDRANT_HOST QDRANT_PORT QDRANT_API_KEY CHROMA_HOST CHROMA_PORT"
).split()


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def llm(provider="openai", **config):
    return {"llm": {"provider": provider, "config": config}}


def store(provider, **config):
    return {"vector_store": {"provider": provider, "config": config}}


def embedder(provider, **config):
    return {"embedder": {"provider": provider, "config": config}}


@pytest.fixture
def asked(model_server):
    """The requests to a model that the dictionary names."""
    model_server.answer(play)
    return lambda: model_server.requests_to(CHAT)


def test_its_model_is_asked_in_place_of_the_owners(alice, asked, model_server):
    MemorySettings.objects.create(owner=alice, provider=MemorySettings.NO_MODEL)
    config = llm(model="m", api_key="k", base_url=model_server.base_url, temperature=0.3)
    memory = Memory.from_config(config, owner=alice)
    add_one(memory, "User likes Python")
    [request] = asked()
    assert request.body["model"] == "m"
    assert request.body["temperature"] == 0.3
    assert request.headers["authorization"] == "Bearer k"
    # Another Memory goes by the owner's choice.
    Memory(alice).add("User lives in NYC", user_id="alice")
    assert len(asked()) == 1


def test_the_usual_variables_count(alice, asked, model_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key of the environment")
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    memory = Memory.from_config(llm(max_tokens=900), owner=alice)
    add_one(memory, "User likes Python")
    [request] = asked()
    assert request.headers["authorization"] == "Bearer key of the environment"
    assert (request.body["model"], request.body["max_tokens"]) == ("gpt-4o-mini", 900)


def test_a_key_in_the_environment_alone_sends_nothing(alice, asked, model_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key of the environment")
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    add_one(Memory.from_config({}, owner=alice), "User likes Python")
    assert asked() == []


@pytest.mark.parametrize(
    "prompts",
    [
        {"custom_prompts": {"fact_extraction": "Only animals.", "update_decision": "Keep all."}},
        {
            "custom_fact_extraction_prompt": "Only animals.",
            "custom_update_memory_prompt": "Keep all.",
        },
    ],
)
def test_its_prompts_are_the_defaults_of_add(alice, asked, model_server, prompts):
    config = llm(model="m", api_key="k", base_url=model_server.base_url) | prompts
    memory = Memory.from_config(config, owner=alice)
    memory.add("User likes Python", user_id="alice")
    memory.add("User likes Python", user_id="alice", prompt="Only plants.")
    systems = [request.body["messages"][0]["content"][:12] for request in asked()]
    assert systems[0].startswith("Only animals")
    assert any(text.startswith("Only plants.") for text in systems)
    assert any(text.startswith("Keep all.") for text in systems)


@pytest.mark.parametrize("kind", ["faiss", "qdrant"])
def test_its_store_has_the_vectors(alice, kind, tmp_path):
    pytest.importorskip({"faiss": "faiss", "qdrant": "qdrant_client"}[kind])
    memory = Memory.from_config(store(kind, path=str(tmp_path / "vectors")), owner=alice)
    add_one(memory, "User likes Python")
    add_one(memory, "User lives in NYC")
    found = memory.search("programming", user_id="alice", limit=1)
    assert texts(found) == ["User likes Python"]
    assert not FactVector.objects.exists()
    assert any((tmp_path / "vectors").rglob("*"))
    memory.vector_index.close()


def test_memory_and_postgres_are_stores_too(alice):
    pytest.importorskip("faiss")
    in_memory = Memory.from_config(store("memory"), owner=alice)
    add_one(in_memory, "User likes Python")
    assert texts(in_memory.search("programming", user_id="alice")) == ["User likes Python"]
    assert not FactVector.objects.exists()
    add_one(Memory.from_config(store("pgvector"), owner=alice), "User lives in NYC")
    assert FactVector.objects.count() == 1


def test_a_store_that_is_away_is_said_to_be(alice, monkeypatch):
    monkeypatch.setenv("QDRANT_HOST", "127.0.0.1")
    monkeypatch.setenv("QDRANT_PORT", "1")
    memory = Memory.from_config(store("qdrant"), owner=alice)
    # It is stored all the same.
    add_one(memory, "User likes Python")
    with pytest.raises(VectorStoreError, match=r"\(Qdrant\) does not answer"):
        memory.search("programming", user_id="alice")


def test_one_embedder_for_all(alice):
    names = {"model": "sentence-transformers/all-MiniLM-L6-v2", "embedding_dims": 384}
    memory = Memory.from_config(embedder("huggingface", **names), owner=alice)
    add_one(memory, "User likes Python")
    with pytest.raises(SetupError, match=r"embedded with local/all-MiniLM.*reembed"):
        Memory.from_config(embedder("openai", api_key="k"), owner=alice)


def test_the_first_program_chooses_the_embedder(alice, settings, model_server):
    # Restored afterwards.
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_MODEL = "local", settings.EMBEDDING_MODEL
    settings.EMBEDDING_DIMENSIONS, settings.EMBEDDING_API_KEY = 384, ""
    config = embedder(
        "openai", model="small", api_key="k", openai_base_url=model_server.base_url, dimensions=384
    )
    memory = Memory.from_config(config, owner=alice)
    add_one(memory, "User likes Python")
    assert (active_space().model, active_space().dimensions) == ("small", 384)
    assert texts(memory.search("Python", user_id="alice")) == ["User likes Python"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ([], r"^config is a dictionary .* llm, embedder"),
        ({"lmm": {}}, r"^config has the entry 'lmm', .* Supported: llm, embedder"),
        ({"history_db_path": "x"}, r"history is in Loci's database.*leave it out"),
        ({"graph_store": {"provider": "neo4j"}}, r"the graph is in Loci's database"),
        ({"version": "v1.0"}, r"config.version must be one of v1.1"),
        (llm("groq"), r"config.llm.provider must be one of openai, anthropic"),
        (llm(model="m"), r"config.llm: OpenAI needs an API key"),
        (llm("ollama"), r"config.llm: No model is named"),
        (llm("azure_openai", model="m", api_key="k"), r"write your resource's own address"),
        (llm(model=7, api_key="k"), r"config.llm.config.model is a text"),
        (llm(api_key="k", temperature="hot"), r"config.llm.config.temperature is a number"),
        (llm(api_key="k", max_tokens=1.5), r"max_tokens is a whole number"),
        (llm(api_key="k", top_p=1), r"'top_p'.*Supported: model, api_key, base_url"),
        (embedder("openai", model="new", api_key="k"), r"dimensions is needed"),
        (embedder("local", model="bert"), r"no local embedding model 'bert'"),
        (store("pinecone"), r"provider must be one of postgres, pgvector, memory, qdrant"),
        (store("qdrant"), r"config.vector_store.config needs one of path, url, host"),
        (store("faiss", path="x", on_disk=True), r"'on_disk'.*Supported: path, collection_name"),
        (store("faiss", path="x", collection_name="A b"), r"collection_name is 2 to 41"),
        ({"custom_prompts": {"extraction": "x"}}, r"Supported: fact_extraction, update_decision"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(config, said):
    with pytest.raises(BadInput, match=said):
        Configuration.read(config)


def test_secrets_are_in_no_message_and_no_repr(alice):
    config = llm(api_key="sk-secret", model="m") | store(
        "qdrant", url="https://user:sk-secret@127.0.0.1:1", api_key="sk-secret"
    )
    read = Configuration.read(config)
    memory = Memory.from_config(config, owner=alice)
    shown = [repr(one) for one in (read, read.endpoint, read.store, memory, memory.vector_index)]
    shown.append(repr(AsyncMemory.from_config(config, owner="me")))
    with pytest.raises(BadInput) as raised:
        Configuration.read(llm(api_key={"sk-secret": "sk-secret"}))
    with pytest.raises(VectorStoreError) as away:
        memory.search("x", user_id="alice") if memory.add("I like tea", user_id="alice") else None
    assert "sk-secret" not in " ".join([*shown, str(raised.value), str(away.value)])


def test_ollamas_address_is_that_of_its_openai_protocol():
    config = llm("ollama", model="llama3", ollama_base_url="http://localhost:11434")
    assert Configuration.read(config).endpoint.base_url == "http://localhost:11434/v1"


@pytest.mark.django_db(transaction=True)
def test_awaited_it_is_the_same(alice, model_server):
    model_server.answer(play)
    config = llm(model="m", api_key="k", base_url=model_server.base_url)
    with pytest.raises(BadInput):
        AsyncMemory.from_config({"lmm": {}})

    async def live():
        memory = AsyncMemory.from_config(config, owner=alice)
        return await memory.add("User likes Python", user_id="alice")

    assert len(asyncio.run(live())["results"]) == 1
    assert model_server.requests_to(CHAT)[0].body["model"] == "m"
