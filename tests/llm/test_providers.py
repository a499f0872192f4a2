from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from llm import providers
from llm.errors import ModelRefused


def test_the_promised_providers_are_there():
    names = ["openrouter", "openai", "anthropic", "gemini", "azure", "ollama", "vllm"]
    assert sorted(providers.PRESETS) == sorted(names)


def test_every_preset_has_an_address_or_says_what_to_write():
    for preset in providers.PRESETS.values():
        assert preset.base_url or preset.hint
        if preset.base_url:
            parts = urlsplit(preset.base_url)
            assert parts.scheme == ("http" if preset.self_hosted else "https")


def test_a_preset_is_found_by_name_in_any_case():
    endpoint = providers.endpoint("OpenAI", "gpt-4o-mini", "sk-key")
    assert endpoint.base_url == "https://api.openai.com/v1"
    assert str(endpoint) == "OpenAI (gpt-4o-mini)"


def test_any_base_url_will_do_and_needs_no_key():
    endpoint = providers.endpoint("http://10.0.0.5:9000/v1", "my-model")
    assert endpoint.base_url == "http://10.0.0.5:9000/v1"


@pytest.mark.parametrize(
    ("provider", "model", "key", "sentence"),
    [
        ("nowhere", "m", "k", "use one of openrouter, openai"),
        ("ftp://example.org", "m", "k", "starts with http:// or https://"),
        ("https://", "m", "k", "is unknown"),
        ("azure", "m", "k", "https://YOUR-RESOURCE.openai.azure.com/openai/v1/"),
        ("openai", "m", "", "OpenAI needs an API key"),
        ("openai", "", "k", "No model is named for openai"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(provider, model, key, sentence):
    with pytest.raises(ModelRefused, match=sentence):
        providers.endpoint(provider, model, key)


def test_no_provider_means_no_endpoint(settings):
    settings.LLM_PROVIDER = ""
    assert providers.deployment_endpoint() is None


def test_the_deployments_endpoint_comes_from_the_settings(settings):
    settings.LLM_PROVIDER = "ollama"
    settings.LLM_MODEL = "qwen3"
    endpoint = providers.deployment_endpoint()
    assert endpoint == providers.Endpoint("ollama", "http://localhost:11434/v1", "", "qwen3")


def test_a_url_is_shown_without_its_secrets():
    shown = providers.shown("https://user:password@proxy.example.org:8443/v1?key=secret")
    assert shown == "https://proxy.example.org:8443/v1"
    assert providers.shown("openai") == "openai"


def test_ones_own_servers_are_free_of_charge():
    free = [name for name in [*providers.PRESETS, "local"] if providers.is_self_hosted(name)]
    assert free == ["ollama", "vllm", "local"]
    assert not providers.is_self_hosted("https://api.example.org/v1")
