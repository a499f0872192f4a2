"""Translate internal errors to the SDK's errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import InterfaceError, OperationalError, connection

from llm.errors import LLMError as ModelFailed
from palace.errors import NoSuchFact
from palace.sdk.errors import EmbeddingError, NotFoundError, SetupError, VectorStoreError

P = ParamSpec("P")
R = TypeVar("R")


def a_call(method: Callable[P, R]) -> Callable[P, R]:
    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with translate_errors():
            return method(*args, **kwargs)

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
