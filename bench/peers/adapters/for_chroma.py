"""The model in the form that Chroma, and what is built on it, asks for."""

from __future__ import annotations

from typing import Any

import chromadb

from bench.peers.adapters.minilm import shared_model


class SameMiniLM(chromadb.EmbeddingFunction[list[str]]):  # type: ignore[misc]
    """Chroma's default model under its default name, from files that are here already.

    Chroma makes one whenever it opens a collection, so the model itself is shared, as the session
    of Chroma's own function is.
    """

    def __init__(self) -> None:
        """Chroma warns of a function that has none."""

    def __call__(self, input: list[str]) -> list[Any]:
        return list(shared_model().embed(input))

    @staticmethod
    def name() -> str:
        return "default"

    def get_config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> SameMiniLM:
        return SameMiniLM()
