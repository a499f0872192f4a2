from __future__ import annotations

import pytest

from llm import dialects, providers
from tests.model_server import ModelServer

KEY = "sk-this-is-a-secret-key"


@pytest.fixture(autouse=True)
def nothing_learnt():
    """A port may come up again; what was learnt of the server there before must not."""
    dialects._learnt.clear()


@pytest.fixture
def model_server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def endpoint(model_server, settings):
    settings.LLM_MAX_RETRIES = 1
    settings.LLM_TIMEOUT_S = 5
    return providers.endpoint(model_server.base_url, "gpt-4o-mini", KEY)
