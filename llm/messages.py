"""Messages, options and results of chat model calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from llm.providers import Endpoint


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    text: str
    # The provider's name of it, which may be more specific than the requested one.
    model: str
    tokens_in: int
    tokens_out: int
    # "stop", or "length" if `max_tokens` truncated the text.
    finish_reason: str


@dataclass(frozen=True)
class Ask:
    """The options of one call."""

    endpoint: Endpoint
    purpose: str
    owner_id: int | None = None
    max_tokens: int | None = None
    # None for the provider's default.
    temperature: float | None = 0
    # The longest silence of the server; None for LOCI_LLM_TIMEOUT_S.
    timeout_s: float | None = None
    # None for LOCI_LLM_MAX_RETRIES.
    max_retries: int | None = None
    # `name`, `schema` and `strict`, for a JSON answer.
    json_schema: dict[str, Any] | None = None
