"""Summaries by a language model: one structured call a conversation, checked against it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, Field, field_validator

from llm.providers import Endpoint
from palace.knowledge.episodes.extractive import MOST_DECISIONS
from palace.knowledge.episodes.material import MOST_ENTITIES, MOST_TOOLS, Material
from palace.knowledge.episodes.prompt import SYSTEM, messages
from palace.knowledge.episodes.summary import Summary
from palace.knowledge.facts.model_calls import ask
from palace.storable import storable_label

SUMMARY_CHARS = 2_000
DECISION_CHARS = 400
_NAME_CHARS = 80


class EpisodeAnswer(BaseModel):
    """What a conversation came to."""

    summary: str
    key_decisions: list[str] = Field(default_factory=list)
    entities: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)

    @field_validator("summary")
    @classmethod
    def _says_something(cls, summary: str) -> str:
        if not summary.strip():
            raise ValueError("The summary is empty.")
        return summary


def summarise_with_model(material: Material, *, endpoint: Endpoint, owner_id: int) -> Summary:
    """What the model makes of it. The very same question is not paid for twice within an hour.

    Raises:
        LLMError: the model cannot be asked, or answers nonsense.
    """
    answer = ask(messages(material), EpisodeAnswer, endpoint=endpoint, owner_id=owner_id)
    decisions = _lines(answer.key_decisions, DECISION_CHARS)
    return Summary(
        _line(answer.summary, SUMMARY_CHARS),
        tuple(decisions)[:MOST_DECISIONS],
        tuple(_named(answer.entities, material))[:MOST_ENTITIES] or material.entities,
        tuple(dict.fromkeys((*material.tools, *_named(answer.tools, material))))[:MOST_TOOLS],
        model=storable_label(str(endpoint)),
    )


def input_hash(material: Material, endpoint: Endpoint | None) -> str:
    """Of all that the summary depends on: with the same one it would be made again for nothing."""
    told = [str(endpoint), material.messages, material.title, material.agent, SYSTEM]
    told += [*material.entities, "", *material.tools, ""]
    for said in material.said:
        told += [said.role, said.speaker, said.text]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _named(names: Sequence[str], material: Material) -> Iterator[str]:
    """Those that stand in the conversation, as it spells them or not."""
    texts = [one.text.casefold() for one in material.said]
    for name in _lines(names, _NAME_CHARS):
        if any(name.casefold() in text for text in texts):
            yield name


def _lines(texts: Sequence[str], limit: int) -> dict[str, None]:
    """Each once, in order."""
    lines = (_line(text, limit) for text in texts)
    return dict.fromkeys(line for line in lines if line)


def _line(text: str, limit: int) -> str:
    """On one line, as much of it as fits and as can be stored."""
    kept = " ".join(text.encode(errors="replace").decode().replace("\0", " ").split())
    return kept if len(kept) <= limit else f"{kept[: limit - 1].rstrip()}…"
