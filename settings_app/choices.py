"""What can be chosen on the settings page, and how it is called there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from llm import embedding, guard, providers, reranking
from llm.embedding import EmbeddingModel
from llm.embedding.build import DIMENSIONS, MODEL_NAME
from llm.errors import ModelRefused
from llm.providers import PRESETS, Endpoint, Preset

# In the form; what is stored beside the presets' names is said by MemorySettings.
THIS_SERVER, NO_MODEL, OWN_ADDRESS = "server", "none", "address"


@dataclass(frozen=True, slots=True)
class RecipeChoice:
    """A recipe of recall, by its name there."""

    value: str
    label: str
    help: str


# The first is what serves who chose nothing. That a model orders is a choice of its own.
RECIPES = (
    RecipeChoice(
        "default", "Thorough", "By meaning and by words, among the most drawers: finds the most."
    ),
    RecipeChoice(
        "fast",
        "Quick",
        "The same among a third as many: enough where a question has one answer.",
    ),
    RecipeChoice(
        "facts-first",
        "What is known first",
        "As thorough; most of what a model is given are facts.",
    ),
    RecipeChoice(
        "keyword",
        "By words alone",
        "Your question is not compared by meaning: what was said in other words is not found.",
    ),
)

# Beside the one in use, so that people see what they might ask their operator for.
WELL_KNOWN_EMBEDDERS = (
    EmbeddingModel(providers.LOCAL, MODEL_NAME, DIMENSIONS),
    EmbeddingModel("openai", "text-embedding-3-small", 1536),
    EmbeddingModel("openai", "text-embedding-3-large", 3072),
)


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """
    Attributes:
        refusal: Why a user may not choose it here; empty where one may.
        reranker: The model that orders where none is named; empty where it is the one that replies.
    """

    value: str
    label: str
    takes_address: bool = False
    takes_model: bool = True
    refusal: str = ""
    reranker: str = ""


def provider_choices() -> Iterator[ProviderChoice]:
    operators = operators_endpoint()
    yield ProviderChoice(
        THIS_SERVER,
        f"This server’s model: {operators or 'none is set'}",
        takes_model=False,
        reranker=providers.small_model(operators) if operators else "",
    )
    yield ProviderChoice(NO_MODEL, "No model", takes_model=False)
    for preset in PRESETS.values():
        yield ProviderChoice(
            preset.name,
            preset.label,
            takes_address=not preset.base_url,
            refusal=_refusal(preset),
            reranker=preset.small_model,
        )
    yield ProviderChoice(OWN_ADDRESS, "Another address", takes_address=True)


def operators_endpoint() -> Endpoint | None:
    """None also where it is set up wrongly, which stops the start with a sentence."""
    try:
        return providers.deployment_endpoint()
    except ModelRefused:
        return None


def own_reranker() -> str:
    """The name of this server's reranker, which serves where no model does; empty without one."""
    folder = reranking.deployment_reranker()
    return folder.name if folder else ""


def recipe_of(stored: str) -> str:
    """How what is stored is chosen in the form: as the default, where it is no longer offered."""
    offered = [each.value for each in RECIPES]
    return stored if stored in offered else offered[0]


def choice_of(provider: str) -> str:
    """How what is stored is chosen in the form."""
    if "://" not in provider:
        return provider or THIS_SERVER
    host = urlsplit(provider).hostname or ""
    return "azure" if host.endswith(".openai.azure.com") else OWN_ADDRESS


def checked_address(address: str) -> str:
    """A base URL that a user may have chosen.

    Raises:
        ModelRefused: it is none, or tells a secret, or is where no user's model may be.
    """
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or not address.isprintable() or " " in address:
        raise ModelRefused(
            "This is not an address: write one like https://models.example.org/v1, the part before "
            "/chat/completions."
        )
    if "@" in parts.netloc or "?" in address or "#" in address:
        raise ModelRefused(
            "Write the address without a name, a password and anything after a question mark; "
            "the key has a field of its own."
        )
    guard.check_address(address)
    return address


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    model: EmbeddingModel
    in_use: bool

    @property
    def value(self) -> str:
        return f"{self.model.provider} {self.model.name} {self.model.dimensions}"

    @property
    def label(self) -> str:
        if self.model.is_local:
            return f"{self.model.name}, on this server"
        preset = PRESETS.get(self.model.provider.lower())
        where = preset.label if preset else providers.shown(self.model.provider)
        return f"{self.model.name}, at {where}"


def embedder_choices() -> list[EmbedderChoice]:
    """The one in use first."""
    in_use = embedding.deployment_model()
    others = [EmbedderChoice(model, in_use=False) for model in WELL_KNOWN_EMBEDDERS]
    return [
        EmbedderChoice(in_use, in_use=True),
        *(choice for choice in others if choice.model != in_use),
    ]


def _refusal(preset: Preset) -> str:
    try:
        guard.check_address(preset.base_url)
    except ModelRefused as error:
        return str(error)
    return ""
