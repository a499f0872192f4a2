"""A summary, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass, field

from palace.models import Episode
from palace.storage.indexing.vector_index import Vector


@dataclass(frozen=True, slots=True)
class Summary:
    """
    Attributes:
        decisions: What was decided, one sentence each, in order.
        entities: Whom and what it is about, by name.
        tools: What was used, by name.
        model: Which one made it; empty where local rules did.
        vector: Where it is known without embedding the text.
    """

    text: str
    decisions: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    model: str = ""
    vector: Vector | None = field(default=None, compare=False)

    @property
    def made_by(self) -> str:
        return Episode.Maker.MODEL if self.model else Episode.Maker.LOCAL
