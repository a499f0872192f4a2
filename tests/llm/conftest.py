from __future__ import annotations

import pytest

from llm import chat, providers
from llm.providers import Endpoint

KEY = "sk-this-is-a-secret-key"
MESSAGES = [{"role": "user", "content": "Hello?"}]


@pytest.fixture
def endpoint(model_server, settings):
    settings.LLM_MAX_RETRIES = 1
    settings.LLM_TIMEOUT_S = 5
    return providers.endpoint(model_server.base_url, "gpt-4o-mini", KEY)


@pytest.fixture
def closed(settings):
    """As on a server: the network is closed to users' models."""
    settings.PRIVATE_PROVIDERS = False
    settings.LLM_MAX_RETRIES = 3


def of_a_user(base_url):
    """As `providers.endpoint` makes one, without its first check: the second must do alone."""
    return Endpoint("own", base_url, KEY, "gpt-4o-mini", of_a_user=True)


def complete(endpoint):
    return chat.complete(MESSAGES, endpoint=endpoint, purpose="chat")
