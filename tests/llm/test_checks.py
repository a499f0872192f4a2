from __future__ import annotations

import pytest

from llm import checks


def test_the_settings_as_they_come_are_fine():
    assert checks.check_embedding_model() == []
    assert checks.check_chat_model() == []


def test_either_local_model_is_fine(settings):
    settings.EMBEDDING_MODEL = "all-MiniLM-L6-v2-int8"
    assert checks.check_embedding_model() == []


@pytest.mark.parametrize(
    ("name", "value", "cure"),
    [
        ("EMBEDDING_MODEL", "all-mpnet-base-v2", "set LOCI_EMBEDDING_MODEL to all-MiniLM-L6-v2"),
        ("EMBEDDING_DIMENSIONS", 768, "set LOCI_EMBEDDING_DIMENSIONS to 384"),
        ("EMBEDDING_PROVIDER", "openai", "LOCI_EMBEDDING_API_KEY"),
        ("EMBEDDING_PROVIDER", "nowhere", "use one of"),
    ],
)
def test_an_embedding_model_that_cannot_work_stops_the_start(settings, name, value, cure):
    setattr(settings, name, value)
    (error,) = checks.check_embedding_model()
    assert error.is_serious()
    assert error.id == "llm.E001"
    assert cure in error.msg


def test_a_chat_model_that_cannot_work_stops_the_start(settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL = "anthropic", "claude-haiku-4-5"
    (error,) = checks.check_chat_model()
    assert error.is_serious()
    assert error.id == "llm.E002"
    assert "Anthropic needs an API key" in error.msg
    assert "LOCI_LLM_API_KEY" in error.msg
    settings.LLM_API_KEY = "sk-key"
    assert checks.check_chat_model() == []
