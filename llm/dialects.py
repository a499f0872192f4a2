"""The parts of OpenAI's protocol that an endpoint supports, learnt from its refusals.

Servers differ: some know `max_tokens` only by its newer name, some models allow no temperature,
some servers have no JSON schemas. Instead of a list, we send all parameters, and when a refusal
names one, we repeat the call without it and remember that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import openai

from llm.providers import Endpoint


@dataclass(frozen=True)
class Dialect:
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    stream_usage: bool = True

    def after(self, refusal: openai.APIStatusError) -> Dialect | None:
        """The dialect to try next; None if the refusal has another cause."""
        words = f"{refusal.param or ''} {refusal.message}".lower()
        if "response_format" in words or "json_schema" in words or "json_object" in words:
            return self._with_less_format()
        if "max_tokens" in words and self.max_tokens_name == "max_tokens":
            return replace(self, max_tokens_name="max_completion_tokens")
        if "temperature" in words and self.temperature:
            return replace(self, temperature=False)
        if "stream_options" in words and self.stream_usage:
            return replace(self, stream_usage=False)
        return None

    def _with_less_format(self) -> Dialect | None:
        if self.response_format == "none":
            return None
        fewer: Literal["json_object", "none"] = (
            "json_object" if self.response_format == "json_schema" else "none"
        )
        return replace(self, response_format=fewer)

    def parameters(
        self,
        *,
        max_tokens: int | None,
        temperature: float | None,
        json_schema: dict[str, Any] | None,
        stream: bool,
    ) -> dict[str, Any]:
        """The request's parameters besides model and messages."""
        parameters: dict[str, Any] = {}
        if max_tokens is not None:
            parameters[self.max_tokens_name] = max_tokens
        if temperature is not None and self.temperature:
            parameters["temperature"] = temperature
        if json_schema and self.response_format != "none":
            parameters["response_format"] = {"type": self.response_format}
            if self.response_format == "json_schema":
                parameters["response_format"]["json_schema"] = json_schema
        if stream:
            parameters["stream"] = True
            if self.stream_usage:
                parameters["stream_options"] = {"include_usage": True}
        return parameters


# By address and model, for the life of the process. A lost update costs one refused request.
_learnt: dict[tuple[str, str], Dialect] = {}


def of(endpoint: Endpoint) -> Dialect:
    return _learnt.get((endpoint.base_url, endpoint.model), Dialect())


def learn(endpoint: Endpoint, dialect: Dialect) -> None:
    _learnt[endpoint.base_url, endpoint.model] = dialect
