"""One description of each call, shared by the sync and the async client, and its arguments as JSON,
query strings and path segments.

A description builds a Call and sends nothing: `waiting` and `awaiting` make methods
of it, which send the call.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from locipalace.client.errors import BadAnswer, BadFilter, BadInput, EmptyQuery, ScopeError

Messages = str | Sequence[Mapping[str, Any]]
Moment = datetime | date | str
Plain = dict[str, Any]


def written(body: object) -> bytes:
    """
    Raises:
        BadInput: JSON cannot represent it.
    """
    try:
        _check_keys(body)
        text = json.dumps(
            body,
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
            default=_as_object,
        )
        return text.encode()
    except UnicodeEncodeError:
        raise _half_a_pair() from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"This cannot be written as JSON: {error}.") from None


def address(path: str, query: Mapping[str, str]) -> str:
    try:
        return f"{path}?{urlencode(query)}" if query else path
    except UnicodeEncodeError:
        raise _half_a_pair() from None


def part(name: str, text: object) -> str:
    """Encode a text as exactly one path segment.

    Raises:
        BadInput: it is not text, is empty, or contains a slash.
    """
    if isinstance(text, str) and "/" in text:
        raise BadInput(f"{name} is a piece of an address here, and has no slash; not {text!r:.60}.")
    return path(name, text)


def path(name: str, text: object) -> str:
    """As `part`, but slashes are allowed."""
    if not isinstance(text, str) or not text:
        raise BadInput(f"{name} is text that is not empty, not {text!r:.60}.")
    try:
        # Dots alone would be a relative path.
        return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")
    except UnicodeEncodeError:
        raise _half_a_pair() from None


def given(**fields: Any) -> Plain:
    """The arguments that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def query_of(**fields: Any) -> dict[str, str]:
    """As `given`, as texts for a query string; objects as JSON."""
    return {name: _in_query(value) for name, value in given(**fields).items()}


def _in_query(value: object) -> str:
    return value if isinstance(value, str) else written(value).decode()


def scope(**ids: object) -> Plain:
    """The scope's ids. The server checks that there is one: the key may imply it.

    Raises:
        ScopeError: an id is not text.
    """
    for name, value in ids.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ScopeError(
                f"{name} is text that is not blank, not {value!r:.60}. "
                "At least one of user_id, agent_id, or run_id must be provided."
            )
    return given(**ids)


def question(query: object) -> object:
    """
    Raises:
        EmptyQuery: it is blank.
    """
    if isinstance(query, str) and not query.strip():
        raise EmptyQuery("The question is empty; write what you want to find.")
    return query


def moment(name: str, value: object) -> str | None:
    """A time as text; UTC if it has no zone; a date means its midnight.

    Raises:
        BadInput: it is neither a time, a date nor text.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise BadInput(f"{name} is a time such as 2024-01-31T09:30:00+01:00, not {value!r:.60}.")
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()


def filters(value: object) -> Plain | None:
    """A filter as JSON values: times become text, sets lists.

    Raises:
        BadFilter: it contains an unsupported value.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise BadFilter(f"A filter is an object, not {value!r:.60}.")
    try:
        plain: Plain = json.loads(json.dumps(dict(value), default=_compared))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadFilter(f"This filter cannot be written as JSON: {error}.") from None
    return plain


def _compared(value: object) -> object:
    if isinstance(value, date):  # A datetime is one.
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return list(value)
    return _as_object(value)


def _as_object(value: object) -> Plain:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def _check_keys(value: object) -> None:
    """Refuse keys that are not text: JSON would convert them silently."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise BadInput(f"Keys of objects are texts, not {key!r:.60}.")
            _check_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_keys(item)


def listed(name: str, value: object) -> list[Any]:
    """
    Raises:
        BadInput: it is not a list; a text is not one.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise BadInput(f"{name} is a list, not {value!r:.60}.")
    return list(value)


def _half_a_pair() -> BadInput:
    return BadInput(
        "A text holds half of a surrogate pair, which cannot be stored; take it out first."
    )


P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """
    Attributes:
        path: From the server's root, percent-encoded.
        read: Builds the result from the response's JSON; None without a body.
        body: Sent as JSON; None for no body.
        absent: Builds the result of a 404; without it
            that is raised.
        also: An error status that is a valid response.
    """

    method: str
    path: str
    read: Callable[[Any], R]
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    absent: Callable[[], R] | None = None
    also: int | None = None


class Waits(ABC, Generic[C_co]):
    """The base of sync clients: sends the described calls."""

    _calls: C_co

    @abstractmethod
    def _send(self, call: Call[R]) -> R: ...


class Awaits(ABC, Generic[C_co]):
    """The base of async clients."""

    _calls: C_co

    @abstractmethod
    async def _send(self, call: Call[R]) -> R: ...


def waiting(
    describe: Callable[Concatenate[C, P], Call[R]],
) -> Callable[Concatenate[Waits[C], P], R]:
    @wraps(describe)
    def called(client: Waits[C], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return client._send(describe(client._calls, *args, **kwargs))

    return _with_signature(called, describe)


def awaiting(
    describe: Callable[Concatenate[C, P], Call[R]],
) -> Callable[Concatenate[Awaits[C], P], Coroutine[Any, Any, R]]:
    @wraps(describe)
    async def called(client: Awaits[C], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await client._send(describe(client._calls, *args, **kwargs))

    return _with_signature(called, describe)


F = TypeVar("F")


def _with_signature(called: F, describe: Callable[..., object]) -> F:
    """Set the signature for `help()`, with the call's result type."""
    described: Signature = signature(describe)
    brings = str(described.return_annotation).removeprefix("Call[").removesuffix("]")
    called.__signature__ = described.replace(return_annotation=brings)  # type: ignore[attr-defined]
    return called


def nothing(_answer: object) -> None:
    """The result of a response without a body."""


def an_object(answer: Any) -> Any:
    """The response's object, unchanged.

    Raises:
        BadAnswer: it is not an object.
    """
    if not isinstance(answer, dict):
        raise BadAnswer(f"The server answered {answer!r:.60}, where an object was to come.")
    return answer


def at(name: str) -> Callable[[Any], Any]:
    """Read a field of the response.

    Raises:
        BadAnswer: it is missing.
    """

    def read(answer: Any) -> Any:
        if name not in an_object(answer):
            raise BadAnswer(f"The server's answer has no {name}; is it newer than this client?")
        return answer[name]

    return read
