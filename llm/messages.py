"""Messages, options and results of chat model calls; structured answers, also from sloppy JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

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


Answer = TypeVar("Answer", bound=BaseModel)

_THOUGHT = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*[^\S\n]*\n(.*?)```", re.DOTALL)
_TOO_DEEP = "It is nested too deeply."


def parse_answer(completion: Completion, schema: type[Answer]) -> Answer:
    """
    Raises:
        ValueError: nothing in the text fits the schema; the message quotes it.
    """
    text = _without_thoughts(completion.text).strip()
    try:
        # Valid JSON is taken as it is; repairing it could invent values.
        values = _unwrapped(_loaded(text))
    except ValueError:
        # Repairing a truncated answer would silently drop the rest.
        if completion.finish_reason == "length":
            raise
        values = list(_found_within(text))
    problem: ValueError = ValueError("There is no JSON in it.")
    for value in reversed(values):
        try:
            return schema.model_validate(_storable(value))
        except ValidationError as error:
            problem = error
        except RecursionError:
            problem = ValueError(_TOO_DEEP)
    raise problem


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _without_thoughts(text: str) -> str:
    """Remove each thought up to its first closing tag; an unclosed one stays."""
    kept: list[str] = []
    at, begun = 0, -1
    for mark in _THOUGHT.finditer(text):
        if mark[1] and begun >= 0:
            kept.append(text[at:begun])
            at, begun = mark.end(), -1
        elif not mark[1] and begun < 0:
            begun = mark.start()
    return "".join([*kept, text[at:]])


def _found_within(text: str) -> Iterator[Any]:
    """JSON values within other text, the likeliest last."""
    for candidate in [_braced(text), *reversed(_FENCE.findall(text))]:
        value = _mended(candidate) if candidate else None
        if isinstance(value, list) and not candidate.lstrip().startswith("["):
            # Several pieces of JSON among words: the answer comes after the examples.
            yield from value
        elif isinstance(value, dict | list):
            yield from _unwrapped(value)


def _mended(text: str) -> Any:
    try:
        return json_repair.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _unwrapped(value: Any) -> list[Any]:
    """The value, preceded by its element if it is a list of one."""
    return [value[0], value] if isinstance(value, list) and len(value) == 1 else [value]


def _braced(text: str) -> str:
    """From the first opening bracket to the last closing one, or to the end if none closes."""
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    if not starts:
        return ""
    end = max(text.rfind("}"), text.rfind("]"))
    return text[min(starts) : end + 1 if end > min(starts) else None]


def _storable(value: Any) -> Any:
    """The value without NUL and lone surrogates, which Postgres cannot store."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value
