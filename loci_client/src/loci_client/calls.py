"""One description of each call, for the client that waits and for the one that is awaited.

A description makes a Call of the arguments, and asks nobody: `waiting` and `awaiting` make methods
of it, which send the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from loci_client.errors import BadAnswer

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """
    Attributes:
        path: From the server's root, its pieces written for addresses.
        read: Makes the result of the answer's JSON, which is None where there is no body.
        body: To be sent as JSON; None: no body.
        absent: Makes the result where the server says that there is no such thing; without it
            that is raised.
        also: A status that is an answer, though it tells of a failure.
    """

    method: str
    path: str
    read: Callable[[Any], R]
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    absent: Callable[[], R] | None = None
    also: int | None = None


class Waits(ABC, Generic[C_co]):
    """Has descriptions of calls, and sends what they describe."""

    _calls: C_co

    @abstractmethod
    def _send(self, call: Call[R]) -> R: ...


class Awaits(ABC, Generic[C_co]):
    """As Waits, awaited."""

    _calls: C_co

    @abstractmethod
    async def _send(self, call: Call[R]) -> R: ...


def waiting(
    describe: Callable[Concatenate[C, P], Call[R]],
) -> Callable[Concatenate[Waits[C], P], R]:
    @wraps(describe)
    def called(client: Waits[C], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return client._send(describe(client._calls, *args, **kwargs))

    return _told(called, describe)


def awaiting(
    describe: Callable[Concatenate[C, P], Call[R]],
) -> Callable[Concatenate[Awaits[C], P], Coroutine[Any, Any, R]]:
    @wraps(describe)
    async def called(client: Awaits[C], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await client._send(describe(client._calls, *args, **kwargs))

    return _told(called, describe)


F = TypeVar("F")


def _told(called: F, describe: Callable[..., object]) -> F:
    """For `help()`: it returns what the call brings."""
    told: Signature = signature(describe)
    brings = str(told.return_annotation).removeprefix("Call[").removesuffix("]")
    called.__signature__ = told.replace(return_annotation=brings)  # type: ignore[attr-defined]
    return called


def nothing(_answer: object) -> None:
    """Of an answer without a body."""


def an_object(answer: Any) -> Any:
    """The answer as it is.

    Raises:
        BadAnswer: it is no object.
    """
    if not isinstance(answer, dict):
        raise BadAnswer(f"The server answered {answer!r:.60}, where an object was to come.")
    return answer


def at(name: str) -> Callable[[Any], Any]:
    """Reads what stands in an answer under this name.

    Raises:
        BadAnswer: nothing does.
    """

    def read(answer: Any) -> Any:
        if name not in an_object(answer):
            raise BadAnswer(f"The server's answer has no {name}; is it newer than this client?")
        return answer[name]

    return read
