"""Translate internal errors to the SDK's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import InterfaceError, OperationalError, connection

from isolation import reach
from isolation.reach import Reach
from llm.errors import LLMError as ModelFailed
from palace.errors import NoSuchFact
from palace.sdk.errors import EmbeddingError, NotFoundError, SetupError, VectorStoreError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="OfAPalace")


class OfAPalace(Protocol):
    @property
    def reach(self) -> Reach: ...


def a_call(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    @wraps(method)
    def called(memory: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translate_errors(), reach.within(memory.reach):
            return method(memory, *args, **kwargs)

    return called


@contextmanager
def translate_errors() -> Iterator[None]:
    """
    Raises:
        NotFoundError, EmbeddingError, SetupError, VectorStoreError: in place of the internal error.
    """
    try:
        yield
    except NoSuchFact as error:
        raise NotFoundError(str(error)) from None
    except ModelFailed as error:
        raise EmbeddingError(str(error)) from error
    except SynchronousOnlyOperation as error:
        raise SetupError(
            "Memory blocks, which is not allowed in a running event loop (a notebook has one); use "
            "AsyncMemory there, and await its calls."
        ) from error
    except (OperationalError, InterfaceError) as error:
        if not connection.in_atomic_block:
            connection.close()  # It may be broken; the next call opens another.
        raise VectorStoreError(f"The database does not respond: {error}") from error
