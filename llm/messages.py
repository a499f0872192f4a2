"""What is said to a chat model, how, and what comes back."""

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
    # As the provider names it, which may say more than what was asked for.
    model: str
    tokens_in: int
    tokens_out: int
    # "stop", or "length" where `max_tokens` cut the text short.
    finish_reason: str


@dataclass(frozen=True)
class Ask:
    """One call: to whom, for what, for whom, and how."""

    endpoint: Endpoint
    purpose: str
    owner_id: int | None = None
    max_tokens: int | None = None
    # None leaves it to the provider.
    temperature: float | None = 0
    # The longest silence to bear; None for LOCI_LLM_TIMEOUT_S.
    timeout_s: float | None = None
    # None for LOCI_LLM_MAX_RETRIES.
    max_retries: int | None = None
    # `name`, `schema` and `strict`, for an answer in JSON.
    json_schema: dict[str, Any] | None = None
