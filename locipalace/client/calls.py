"""One description of each call, shared by the sync and the async client.

A description builds a Call and sends nothing: `waiting` and `awaiting` make methods
of it, which send the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from locipalace.client.errors import BadAnswer

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
