"""Alice's memories, as the SDK keeps them: by rules and by a model, in Postgres and in Qdrant."""

from __future__ import annotations

import pytest

from palace.sdk import Memory
from palace.storage.indexing.fact_vectors import PgVectorIndex, open_store
from tests.sdk.scripted_model import play


@pytest.fixture
def model(settings, model_server):
    settings.LLM_PROVIDER = model_server.base_url
    settings.LLM_MODEL = "small-model"
    settings.LLM_API_KEY = "a-key"
    settings.LLM_MAX_RETRIES = 0
    settings.LLM_TIMEOUT_S = 5
    model_server.answer(play)
    return model_server


@pytest.fixture
def qdrant():
    pytest.importorskip("qdrant_client", reason="Qdrant comes with the extra `qdrant`.")
    with open_store("qdrant") as index:
        yield index


# What Qdrant does is tested with the other stores, every day.
IN_QDRANT = pytest.param("rules in Qdrant", marks=pytest.mark.exhaustive)


@pytest.fixture(params=["rules", "model", IN_QDRANT])
def memory(request, alice):
    """The same cases three times over."""
    if request.param == "model":
        request.getfixturevalue("model")
    in_qdrant = request.param == "rules in Qdrant"
    index = request.getfixturevalue("qdrant") if in_qdrant else PgVectorIndex()
    return Memory(alice, vector_index=index)


@pytest.fixture
def plain(alice):
    """One memory, where it does not matter who reads and who keeps the vectors."""
    return Memory(alice)
