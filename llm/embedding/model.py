"""Which embedding model: its provider, name and dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field

from llm import providers


@dataclass(frozen=True)
class EmbeddingModel:
    """An embedding model. Two models that compare equal make the same vectors."""

    provider: str
    name: str
    dimensions: int
    api_key: str = field(default="", repr=False, compare=False)

    @property
    def is_local(self) -> bool:
        return self.provider == providers.LOCAL
