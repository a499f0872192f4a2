"""`Memory.from_config`, which takes a dictionary of choices, and `open_vector_store`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from language.errors import EmbeddingMismatch
from llm import embedding, providers
from llm.embedding import EmbeddingModel
from llm.embedding.local_models import DIMENSIONS, LOCAL_MODELS
from llm.errors import EmbedderMisconfigured, ModelRefused
from llm.providers import LOCAL, Endpoint
from palace.sdk.arguments import MOST_PROMPT_CHARS
from palace.sdk.errors import BadInput, SetupError, translate_errors
from palace.storage.indexing.fact_vectors import Store, VectorIndex, open_store
from palace.storage.indexing.spaces import adopt


class Provider(NamedTuple):
    """
    Attributes:
        preset: Its name in `llm.providers`.
        key, address: The variables that count where the dictionary has neither.
        model: The chat model where none is named.
    """

    preset: str
    key: str = ""
    address: str = ""
    model: str = ""


LLMS = {
    "openai": Provider("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-4o-mini"),
    "anthropic": Provider("anthropic", "ANTHROPIC_API_KEY"),
    "google": Provider("gemini", "GOOGLE_API_KEY"),
    "gemini": Provider("gemini", "GOOGLE_API_KEY"),
    "ollama": Provider("ollama"),
    "azure_openai": Provider("azure", "AZURE_OPENAI_API_KEY"),
    "openrouter": Provider("openrouter", "OPENROUTER_API_KEY"),
    "vllm": Provider("vllm"),
}
# Local models go by either name.
HERE = (LOCAL, "huggingface")
EMBEDDERS = (*HERE, *(name for name in LLMS if name not in {"anthropic", "openrouter"}))
MODEL_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
}
_AT_A_SERVER = ("path", "url", "host", "port", "api_key", "collection_name")
STORES = {
    "postgres": (),
    "pgvector": (),
    "memory": (),
    "qdrant": _AT_A_SERVER,
    "chroma": _AT_A_SERVER,
    "faiss": ("path", "collection_name"),
    "milvus": ("path", "url", "token", "collection_name"),
}
_PROMPTS = {
    "custom_fact_extraction_prompt": "fact_extraction",
    "custom_update_memory_prompt": "update_decision",
}
ENTRIES = ("llm", "embedder", "vector_store", "custom_prompts", *_PROMPTS, "version")
# Why some entries that other libraries take are not supported.
_REASONS = {
    "history": "the history is in Loci's database",
    "history_db_path": "the history is in Loci's database",
    "graph_store": "the graph is in Loci's database",
    "embedding_model_dims": "vectors have the dimensions of the embedder",
}
MOST_TOKENS = 1_000_000


class Section:
    """One part of the dictionary. Errors name its entries, never their values: some are secrets."""

    def __init__(self, where: str, given: object, allowed: Collection[str]) -> None:
        """
        Raises:
            BadInput: it is not a dictionary, or has other entries.
        """
        self._where, self._given = where, given if given is not None else {}
        names = ", ".join(allowed) or "none"
        if not isinstance(self._given, Mapping):
            raise BadInput(f"{where} is a dictionary with the entries {names}.")
        for name in self._given:
            if name not in allowed:
                why = f" ({_REASONS[name]})" if name in _REASONS else ""
                raise BadInput(
                    f"{where} has the entry {str(name)[:60]!r}, which is not supported{why}; leave "
                    f"it out. Supported: {names}."
                )

    def part(self, name: str, allowed: Collection[str]) -> Section:
        return Section(f"{self._where}.{name}", self._value(name), allowed)

    def has(self, name: str) -> bool:
        return self._value(name) is not None

    def text(self, name: str, most: int = 1000) -> str:
        value = self._value(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > most:
            raise BadInput(f"{self._where}.{name} is a text of up to {most:,} characters.")
        return value.strip()

    def first_text(self, *names: str) -> str:
        return next((text for name in names if (text := self.text(name))), "")

    def choice(self, name: str, choices: Collection[str]) -> str:
        value = self.text(name).lower()
        if value not in choices:
            raise BadInput(f"{self._where}.{name} must be one of {', '.join(choices)}.")
        return value

    def number(self, name: str, most: float) -> float | None:
        value = self._value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise BadInput(f"{self._where}.{name} is a number from 0 to {most:,g}.")
        return float(value)

    def whole(self, name: str, most: int) -> int | None:
        value = self.number(name, most)
        if value is not None and (not value.is_integer() or not value):
            raise BadInput(f"{self._where}.{name} is a whole number from 1 to {most:,}.")
        return None if value is None else int(value)

    def _value(self, name: str) -> Any:
        return self._given.get(name) if isinstance(self._given, Mapping) else None


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a program has chosen; None where it leaves it to the owner and the server.

    Attributes:
        prompt, judging_prompt: The defaults of these arguments of `Memory.add`.
    """

    endpoint: Endpoint | None = None
    embedder: EmbeddingModel | None = None
    store: Store | None = None
    prompt: str | None = None
    judging_prompt: str | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """
        Raises:
            BadInput: an entry is unknown, not supported, or makes no sense; says which.
        """
        root = Section("config", config, ENTRIES)
        prompts = root.part("custom_prompts", _PROMPTS.values())
        if root.has("version"):
            root.choice("version", ["v1.1"])
        extraction, judging = (
            prompts.text(name, MOST_PROMPT_CHARS) or root.text(alias, MOST_PROMPT_CHARS) or None
            for alias, name in _PROMPTS.items()
        )
        return cls(_llm(root), _embedder(root), _store(root), extraction, judging)

    def adopt_embedder(self) -> None:
        """
        Raises:
            SetupError: the palaces are embedded with another model.
        """
        if self.embedder is None:
            return
        try:
            adopt(self.embedder)
        except EmbeddingMismatch as error:
            raise SetupError(str(error)) from None

    def open_index(self) -> VectorIndex | None:
        """The index of the vector store; None for the server's own.

        Raises:
            VectorStoreAway: it does not answer.
        """
        return None if self.store is None else self.store.open()


def open_vector_store(
    kind: str,
    *,
    folder: str | Path | None = None,
    url: str = "",
    api_key: str = "",
    collection: str = "facts",
) -> VectorIndex:
    """A store of facts' vectors for `Memory(vector_index=…)`.

    Args:
        kind: postgres, qdrant, chroma, faiss or milvus.
        folder, url: Where it is; in memory if neither is given.
        collection: What the names of its collections begin with.

    Raises:
        BadInput: there is no such store, or it lacks something; says what.
        VectorStoreError: another process has the folder, or a server of Chroma or Milvus does not
            answer. Qdrant's is first asked by a call.
    """
    with translate_errors():
        return open_store(kind, folder=folder, url=url, api_key=api_key, collection=collection)


def _llm(root: Section) -> Endpoint | None:
    if not root.has("llm"):
        return None
    named, provider = _provider(root, "llm", LLMS)
    config = named.part(
        "config", ("model", "api_key", "base_url", *_aliases(provider), "temperature", "max_tokens")
    )
    place = _address(config, provider) or LLMS[provider].preset
    model = config.text("model") or LLMS[provider].model
    try:
        endpoint = providers.endpoint(place, model, _key(config, provider))
    except ModelRefused as error:
        raise BadInput(f"config.llm: {error}") from None
    return replace(
        endpoint,
        temperature=config.number("temperature", 2),
        max_tokens=config.whole("max_tokens", MOST_TOKENS),
    )


def _embedder(root: Section) -> EmbeddingModel | None:
    if not root.has("embedder"):
        return None
    named, provider = _provider(root, "embedder", EMBEDDERS)
    sizes = ("dimensions", "embedding_dims")
    if provider in HERE:
        config = named.part("config", ("model", *sizes))
        # Hugging Face's names begin with the publisher's.
        name = config.text("model").rpartition("/")[2] or next(iter(LOCAL_MODELS))
        place, key, known = LOCAL, "", DIMENSIONS
    else:
        config = named.part("config", ("model", "api_key", "base_url", *_aliases(provider), *sizes))
        name = config.text("model") or ("text-embedding-3-small" if provider == "openai" else "")
        place = _address(config, provider) or LLMS[provider].preset
        key, known = _key(config, provider), MODEL_DIMENSIONS.get(name, 0)
    size = next((given for each in sizes if (given := config.whole(each, 16_000))), known)
    if not size:
        raise BadInput(f"config.embedder.config.dimensions is needed: {name!r} is not known.")
    model = EmbeddingModel(place, name, size, key)
    try:
        embedding.check(model)
    except EmbedderMisconfigured as error:
        raise BadInput(f"config.embedder: {error}") from None
    return model


def _store(root: Section) -> Store | None:
    if not root.has("vector_store"):
        return None
    allowed = ("provider", "config", "collection_name")
    named = root.part("vector_store", allowed)
    kind = named.choice("provider", STORES)
    config = named.part("config", STORES[kind])
    if kind in {"postgres", "pgvector"}:
        return Store("postgres")
    if kind == "memory":
        return Store("faiss")
    folder, url = config.text("path"), _store_address(config, kind)
    if not (folder or url):
        places = [name for name in STORES[kind] if name in {"path", "url", "host"}]
        raise BadInput(f"config.vector_store.config needs one of {', '.join(places)}.")
    key = config.first_text("api_key", "token") or _variable(f"{kind.upper()}_API_KEY")
    name = config.text("collection_name") or named.text("collection_name") or "facts"
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,40}", name):
        raise BadInput(
            "config.vector_store.collection_name is 2 to 41 lower-case letters, digits and "
            "underscores, and begins with a letter."
        )
    return Store(kind, folder, url, key if url else "", name)


def _store_address(config: Section, kind: str) -> str:
    """Its own entries come first; the variables count only where it has none."""
    if config.has("url") or config.has("path"):
        return config.text("url")
    host, port = config.text("host"), config.whole("port", 65_535)
    if not host:
        host = _variable(f"{kind.upper()}_HOST")
        port = port or _port(kind)
    if not host:
        return ""
    address = host if "://" in host else f"http://{host}"
    return f"{address}:{port}" if port else f"{address}:{6333 if kind == 'qdrant' else 8000}"


def _port(kind: str) -> int | None:
    text = _variable(f"{kind.upper()}_PORT")
    if text and not text.isdecimal():
        raise BadInput(f"{kind.upper()}_PORT is a number.")
    return int(text) if text else None


def _provider(root: Section, name: str, choices: Collection[str]) -> tuple[Section, str]:
    named = root.part(name, ("provider", "config"))
    return named, named.choice("provider", choices)


def _aliases(provider: str) -> tuple[str, ...]:
    """What other libraries call the base URL."""
    return (f"{provider}_base_url",) if provider in {"openai", "ollama", "vllm"} else ()


def _address(config: Section, provider: str) -> str:
    """The base URL; empty for the provider's own."""
    url = config.first_text("base_url", *_aliases(provider)) or _variable(LLMS[provider].address)
    # Ollama's own protocol is at the root, OpenAI's below it.
    if provider == "ollama" and url and urlsplit(url).path in {"", "/"}:
        return url.rstrip("/") + "/v1"
    return url


def _key(config: Section, provider: str) -> str:
    return config.text("api_key") or _variable(LLMS[provider].key)


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip() if name else ""
