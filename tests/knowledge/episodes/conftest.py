from __future__ import annotations

import json

import pytest


@pytest.fixture
def model(settings, model_server):
    settings.LLM_PROVIDER = model_server.base_url
    settings.LLM_MODEL = "small-model"
    settings.LLM_API_KEY = "a-key"
    settings.LLM_MAX_RETRIES = 0
    settings.LLM_TIMEOUT_S = 1
    return model_server


def episode_answer(summary, **more):
    return json.dumps({"summary": summary, "key_decisions": [], "entities": [], "tools": []} | more)


def answering(summary, **more):
    """What a model says that is asked for an episode, and nothing of use to other questions."""

    def answer(request):
        asked = "You keep the records of conversations" in request.prompt
        return episode_answer(summary, **more) if asked else "{}"

    return answer


def asked_for_episodes(server):
    return [one for one in server.requests if "You keep the records" in one.prompt]
