"""Ask a chat model: `complete()` for text, `stream()` for text as it is written, `structured()`
for data, `try_out()` to test a model. All are metered; call them outside of a transaction, because
a rollback would delete the meter's row.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any

from django.conf import settings
from pydantic import BaseModel

from llm.chat_calls import ask, ask_for_stream
from llm.errors import BadModelOutput
from llm.messages import Answer, Ask, Completion, Message, parse_answer
from llm.models import Usage
from llm.providers import Endpoint

__all__ = ["Completion", "Message", "complete", "stream", "structured", "try_out"]

# A trial of a model: a person is waiting.
TRIAL_TIMEOUT_S = 15
# The answer is one word, but some models reason first.
TRIAL_MAX_TOKENS = 1024

TRIAL_QUESTION: list[Message] = [{"role": "user", "content": "Answer with the one word: OK"}]


def complete(
    messages: Sequence[Message],
    *,
    endpoint: Endpoint,
    purpose: str,
    owner_id: int | None = None,
    max_tokens: int | None = None,
    temperature: float | None = 0,
    timeout_s: float | None = None,
) -> Completion:
    """Ask for a complete answer.

    Args:
        purpose: One of `Usage.Purpose`.
        temperature: None for the provider's default.
        timeout_s: The longest silence of the server; by default LOCI_LLM_TIMEOUT_S.

    Raises:
        ModelUnavailable: down, slow or busy, also after retries.
        ModelRefused: a wrong key, an unknown model, a request it does not take.
        BadModelOutput: the answer is empty.
    """
    how = Ask(endpoint, purpose, owner_id, max_tokens, temperature, timeout_s)
    return ask(messages, how)


def stream(
    messages: Sequence[Message],
    *,
    endpoint: Endpoint,
    purpose: str,
    owner_id: int | None = None,
    max_tokens: int | None = None,
    temperature: float | None = 0,
    timeout_s: float | None = None,
) -> Generator[str]:
    """Yield the answer's pieces as they arrive. Metered at the end, also if closed early.

    The call starts when the first piece is requested. Close or exhaust it in the thread that reads
    it: the meter then writes to the database.

    Raises:
        ModelUnavailable: as `complete()`; also if the answer stops in the middle.
        ModelRefused, BadModelOutput: as `complete()`.
    """
    how = Ask(endpoint, purpose, owner_id, max_tokens, temperature, timeout_s)
    return ask_for_stream(messages, how)


def structured(
    messages: Sequence[Message],
    schema: type[Answer],
    *,
    endpoint: Endpoint,
    purpose: str,
    owner_id: int | None = None,
    max_tokens: int | None = None,
    temperature: float | None = 0,
    timeout_s: float | None = None,
    max_retries: int | None = None,
) -> Answer:
    """Ask for an answer that fits `schema`.

    Sloppy JSON is repaired: fences, prose around it, trailing commas, missing quotes. An answer
    that still does not fit is returned to the model with the error, once. Both calls are metered.

    Args:
        max_retries: Retries of a failed call; by default LOCI_LLM_MAX_RETRIES.

    Raises:
        BadModelOutput: neither answer fits, or it was cut off by `max_tokens`.
        ModelUnavailable, ModelRefused: as `llm.chat.complete()`.
    """
    how = Ask(
        endpoint=endpoint,
        purpose=purpose,
        owner_id=owner_id,
        max_tokens=max_tokens,
        temperature=temperature,
        timeout_s=timeout_s,
        max_retries=max_retries,
        json_schema={
            "name": schema.__name__,
            "schema": strict_schema(schema),
            "strict": True,
        },
    )
    return _ask_twice(_instructed(messages, schema), schema, how)


def _ask_twice(prompt: list[Message], schema: type[Answer], how: Ask) -> Answer:
    """Ask, and once more with the error if the answer does not fit.

    Raises:
        BadModelOutput: neither answer fits, or it was cut off.
    """
    first = ask(prompt, how)
    try:
        return parse_answer(first, schema)
    except ValueError as error:
        _refuse_if_cut_off(first, how)
        prompt += _correction(first, error)
    second = ask(prompt, how)
    try:
        return parse_answer(second, schema)
    except ValueError:
        _refuse_if_cut_off(second, how)
    # Raised outside of the handler: the original error quotes the model's text.
    raise BadModelOutput(
        f"{how.endpoint} did not answer in the requested format, even after a correction; "
        "try another model."
    )


def try_out(endpoint: Endpoint, *, owner_id: int) -> None:
    """Send one small question, without retries, metered as chat.

    Raises:
        ModelUnavailable, ModelRefused, BadModelOutput: as `complete()`.
    """
    how = Ask(
        endpoint,
        Usage.Purpose.CHAT,
        owner_id,
        max_tokens=TRIAL_MAX_TOKENS,
        timeout_s=min(TRIAL_TIMEOUT_S, settings.LLM_TIMEOUT_S),
        max_retries=0,
    )
    ask(TRIAL_QUESTION, how)


def _instructed(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """Put the schema into the system message: some servers accept a response format but ignore it.

    There is exactly one system message, and it comes first, as some models' templates require.
    """
    instruction = (
        "Answer with one JSON value that fits this JSON schema, and nothing else:\n"
        + schema_text(schema)
    )
    if messages and messages[0]["role"] == "system":
        instruction = f"{messages[0]['content']}\n\n{instruction}"
        messages = messages[1:]
    return [{"role": "system", "content": instruction}, *messages]


@cache
def schema_text(schema: type[BaseModel]) -> str:
    """The schema, without titles, which repeat the names, and without empty defaults."""
    short = _shortened(schema.model_json_schema())
    return json.dumps(short, ensure_ascii=False, separators=(",", ":"))


def _shortened(node: Any) -> Any:
    if isinstance(node, list):
        return [_shortened(item) for item in node]
    if not isinstance(node, dict):
        return node
    # A property may itself be called "title" or "default": its name is not a keyword.
    return {
        key: {name: _shortened(of) for name, of in value.items()}
        if key in ("properties", "$defs")
        else _shortened(value)
        for key, value in node.items()
        if not (key == "title" or (key == "default" and not value))
    }


def _correction(answer: Completion, error: ValueError) -> list[Message]:
    return [
        {"role": "assistant", "content": answer.text},
        {
            "role": "user",
            "content": f"That does not fit the schema: {error}\n"
            "Answer again, with the whole JSON and nothing else.",
        },
    ]


def _refuse_if_cut_off(answer: Completion, how: Ask) -> None:
    if answer.finish_reason == "length":
        raise BadModelOutput(
            f"{how.endpoint} ran out of tokens in the middle of its answer; "
            "raise its limit, or send less at once."
        ) from None


@cache
def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema in strict form: all properties required, no others, no defaults.

    Rules: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    strict: dict[str, Any] = _strict(schema.model_json_schema())
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": node["$ref"]}
    strict = {key: _strict(value) for key, value in node.items() if key != "default"}
    properties = node.get("properties")
    if isinstance(properties, dict):
        # A property may itself be called "default" or "$ref": its name is not a keyword.
        strict["properties"] = {name: _strict(value) for name, value in properties.items()}
        strict["required"] = list(properties)
        strict["additionalProperties"] = False
    return strict
