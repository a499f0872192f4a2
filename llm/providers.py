"""Model providers: presets, or any base URL that speaks OpenAI's protocol."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings

from llm import transport
from llm.errors import ModelRefused

LOCAL = "local"


@dataclass(frozen=True)
class Preset:
    """A provider by name."""

    name: str
    label: str
    # Empty if each customer has their own: `hint` says what to enter instead of the name.
    base_url: str
    needs_key: bool = True
    # Runs on the operator's own machine: calls are free.
    self_hosted: bool = False
    hint: str = ""
    # A fast, cheap model for reranking; empty to use the configured one.
    small_model: str = ""


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "openrouter",
            "OpenRouter",
            "https://openrouter.ai/api/v1",
            small_model="anthropic/claude-haiku-4.5",
        ),
        Preset("openai", "OpenAI", "https://api.openai.com/v1", small_model="gpt-5-nano"),
        Preset(
            "anthropic",
            "Anthropic",
            "https://api.anthropic.com/v1/",
            small_model="claude-haiku-4-5",
        ),
        Preset(
            "gemini",
            "Gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            small_model="gemini-2.5-flash-lite",
        ),
        Preset(
            "azure",
            "Azure OpenAI",
            "",
            hint="write your resource's own address instead of the name: "
            "https://YOUR-RESOURCE.openai.azure.com/openai/v1/, and your deployment as the model",
        ),
        Preset("ollama", "Ollama", "http://localhost:11434/v1", needs_key=False, self_hosted=True),
        Preset("vllm", "vLLM", "http://localhost:8000/v1", needs_key=False, self_hosted=True),
    )
}


@dataclass(frozen=True)
class Endpoint:
    """One model at one provider."""

    provider: str
    base_url: str
    api_key: str = field(repr=False, compare=False)
    model: str
    # Chosen by a user, not by the operator.
    of_a_user: bool = False
    # What its user says that a million tokens cost, in US dollars: read ones, written ones.
    price: tuple[Decimal, Decimal] | None = field(default=None, compare=False)
    # In place of those of each call.
    temperature: float | None = None
    max_tokens: int | None = None

    def with_model(self, model: str) -> Endpoint:
        """Another model of the same provider; the named price is not its own."""
        if model == self.model:
            return self
        return replace(self, model=model, price=None)

    @property
    def host(self) -> str:
        """The host that is called, for display."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""

    def __str__(self) -> str:
        """For sentences: "OpenAI (gpt-4o-mini)".

        Users read these sentences: the address of an operator's own server is not in them.
        """
        preset = PRESETS.get(self.provider.lower())
        own = shown(self.base_url) if self.of_a_user else "The model server"
        return f"{preset.label if preset else own} ({self.model})"

    @property
    def identity(self) -> str:
        """Which model at which server, to tell whether an earlier answer is from the same."""
        preset = PRESETS.get(self.provider.lower())
        return f"{preset.label if preset else shown(self.base_url)} ({self.model})"

    @property
    def address(self) -> str:
        """The address to check, for error messages."""
        return shown(self.base_url) if self.of_a_user else "the URL in the server's settings"


def base_url(provider: str) -> str:
    """The base URL of a preset, or the provider itself if it is a URL.

    Raises:
        ModelRefused: neither; or a preset without a common address.
    """
    preset = PRESETS.get(provider.lower())
    if preset and preset.base_url:
        return preset.base_url
    if preset:
        raise ModelRefused(f"{preset.label} has no one address: {preset.hint}.")
    if not is_url(provider):
        raise ModelRefused(
            f"The model provider {provider!r} is unknown; use one of {', '.join(PRESETS)}, "
            "or a base URL that starts with http:// or https://."
        )
    return provider


def endpoint(provider: str, model: str, api_key: str = "", *, of_a_user: bool = False) -> Endpoint:
    """Build and validate an endpoint, without calling it.

    Args:
        of_a_user: Chosen by a user, not by the operator.

    Raises:
        ModelRefused: something is missing, or the address is not allowed for users.
    """
    url = base_url(provider)
    if of_a_user:
        transport.check_address(url)
    preset = PRESETS.get(provider.lower())
    if not model:
        raise ModelRefused(f"No model is named for {shown(provider)}; say which one to use.")
    if preset and preset.needs_key and not api_key:
        raise ModelRefused(f"{preset.label} needs an API key, and none is set.")
    return Endpoint(
        provider=provider, base_url=url, api_key=api_key, model=model, of_a_user=of_a_user
    )


def small_model(endpoint: Endpoint) -> str:
    """The preset's fast, cheap model, or else the configured one."""
    preset = PRESETS.get(endpoint.provider.lower())
    return (preset.small_model if preset else "") or endpoint.model


def deployment_endpoint() -> Endpoint | None:
    """The operator's model (LOCI_LLM_*), or None if none is configured.

    Raises:
        ModelRefused: the settings are invalid; the message says what to set.
    """
    if not settings.LLM_PROVIDER:
        return None
    try:
        return endpoint(settings.LLM_PROVIDER, settings.LLM_MODEL, settings.LLM_API_KEY)
    except ModelRefused as error:
        raise ModelRefused(f"{error} {_LLM_SETTINGS}") from None


_LLM_SETTINGS = "The chat model is set by LOCI_LLM_PROVIDER, LOCI_LLM_MODEL and LOCI_LLM_API_KEY."


def is_self_hosted(provider: str) -> bool:
    preset = PRESETS.get(provider.lower())
    return provider == LOCAL or bool(preset and preset.self_hosted)


def shown(provider: str) -> str:
    """The provider for display and storage: a URL without user name, password and query."""
    if not is_url(provider):
        return provider
    parts = urlsplit(provider)
    return urlunsplit((parts.scheme, parts.netloc.rsplit("@", 1)[-1], parts.path, "", ""))


def is_url(provider: str) -> bool:
    """Whether it is the address of a web server: http or https, a host, no impossible port."""
    try:
        parts = urlsplit(provider)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Half of a bracket, or a port that is no number.
        return False
