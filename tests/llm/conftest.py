from __future__ import annotations

import pytest

from llm import providers

KEY = "sk-this-is-a-secret-key"


@pytest.fixture
def endpoint(model_server, settings):
    settings.LLM_MAX_RETRIES = 1
    settings.LLM_TIMEOUT_S = 5
    return providers.endpoint(model_server.base_url, "gpt-4o-mini", KEY)
