"""Ask a chat model: `complete()` for text, `stream()` for text as it is written, `structured()`
for data. All are retried and metered; call them outside of a transaction, as a rollback would
take the meter's row along.

The calls themselves are imported when the first is made: the openai library takes half a second
and 30 MB, and a house without a chat model never needs it.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

from pydantic import BaseModel

from llm.answers import Answer, parse
from llm.errors import BadModelOutput
from llm.messages import Ask, Completion, Message
from llm.providers import Endpoint

__all__ = ["Completion", "Message", "complete", "stream", "structured"]


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
    """The model's answer, whole.

    Args:
        purpose: One of `Usage.Purpose`.
        temperature: None leaves it to the provider.
        timeout_s: The longest silence to bear; LOCI_LLM_TIMEOUT_S unless given.

    Raises:
        ModelUnavailable: down, slow or busy, also after retries.
        ModelRefused: a wrong key, an unknown model, a request it does not take.
        BadModelOutput: it answered without a word.
    """
    from llm.asking import ask  # noqa: PLC0415 - see the top of this module.

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
    """Pieces of the answer as they come. Metered at the end, also when closed early.

    Nothing is asked before the first piece is. Close it (or use it up) in the thread that reads
    it: the meter writes to the database then.

    Raises:
        ModelUnavailable: as `complete()`; also in the middle, where the answer breaks off.
        ModelRefused, BadModelOutput: as `complete()`.
    """
    from llm.asking import ask_for_stream  # noqa: PLC0415 - see the top of this module.

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
    """The answer as an instance of `schema`.

    Sloppy JSON is mended: fences, prose around it, trailing commas, missing quotes. An answer
    that still does not fit is shown to the model with what is wrong, once. Both calls are metered.

    Args:
        max_retries: How often a call that failed is made again; LOCI_LLM_MAX_RETRIES unless given.

    Raises:
        BadModelOutput: neither answer fits, or it was cut off by `max_tokens`.
        ModelUnavailable, ModelRefused: as `llm.chat.complete()`.
    """
    from llm.asking import ask  # noqa: PLC0415 - see the top of this module.

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
    asked = _instructed(messages, schema)
    first = ask(asked, how)
    try:
        return parse(first, schema)
    except ValueError as error:
        _refuse_if_cut_off(first, how)
        asked += _correction(first, error)
    second = ask(asked, how)
    try:
        return parse(second, schema)
    except ValueError:
        _refuse_if_cut_off(second, how)
    # Raised outside of the handler: the error's own text quotes what the model wrote.
    raise BadModelOutput(
        f"{endpoint} did not answer in the form it was asked for, also when told what was wrong; "
        "try another model."
    )


def _instructed(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """With the schema in the system message: some servers take a response format and ignore it.

    There is one system message and it comes first, as some models' templates demand.
    """
    instruction = (
        "Answer with one JSON value that fits this JSON schema, and nothing else:\n"
        + json.dumps(schema.model_json_schema(), ensure_ascii=False)
    )
    if messages and messages[0]["role"] == "system":
        instruction = f"{messages[0]['content']}\n\n{instruction}"
        messages = messages[1:]
    return [{"role": "system", "content": instruction}, *messages]


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
            "allow it more, or send it less at once."
        ) from None


def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Every property required and no others allowed; nothing beside a reference; no defaults.

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
