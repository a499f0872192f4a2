"""The SDK's errors, and the translation of internal errors to them.

Each is a subclass of PalaceError, with a `code` and a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import InterfaceError, OperationalError, connection

from isolation import row_access
from isolation.row_access import Access
from language.errors import (
    BadFilter,
    BadInput,
    EmptyQuery,
    FactConflict,
    NamespaceFull,
    NoSuchFact,
    NotItsOwn,
    PalaceError,
    QuotaExceeded,
    TooMuch,
    VectorStoreAway,
    WorkingMemoryAway,
)
from llm.database_writes import is_disk_full
from llm.errors import LLMError as ModelFailed

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="OfAPalace")
__all__ = [
    "BadFilter",
    "BadInput",
    "EmbeddingError",
    "EmptyQuery",
    "FactConflict",
    "LLMError",
    "NamespaceFull",
    "NotFoundError",
    "NotItsOwn",
    "PalaceError",
    "QuotaExceeded",
    "ScopeError",
    "SetupError",
    "TooMuch",
    "VectorStoreError",
    "WorkingMemoryAway",
    "WrongPalace",
]


class ScopeError(PalaceError):
    """The call names no scope."""

    code = "scope_missing"

    def __init__(self, why: str = "") -> None:
        needed = "At least one of user_id, agent_id, or run_id must be provided"
        super().__init__(f"{why} {needed}." if why else needed)


class WrongPalace(PalaceError):
    """The call names another palace than the one that this Memory is bound to."""

    code = "wrong_palace"

    def __init__(self) -> None:
        super().__init__("This opens one palace only, and not that one. Leave user_id out.")


class NotFoundError(PalaceError):
    """The owner has no such memory, or it was deleted."""

    code = "not_found"


class LLMError(PalaceError):
    """A model call failed. Failures of chat models are not raised: local rules take over."""

    code = "llm_error"


class EmbeddingError(LLMError):
    """The embedding model failed; search by meaning needs it."""

    code = "embedding_error"


class VectorStoreError(PalaceError):
    """The database, or another store of vectors, does not respond."""

    code = "vector_store_error"


class SetupError(PalaceError):
    """Setup failed; the message says what to do."""

    code = "setup_error"


class OfAPalace(Protocol):
    @property
    def row_access(self) -> Access: ...


def a_call(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    @wraps(method)
    def called(memory: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translate_errors(), row_access.use(memory.row_access):
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
    except VectorStoreAway as error:
        raise VectorStoreError(str(error)) from error
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
        said = "has no space left" if is_disk_full(error) else "does not respond"
        raise VectorStoreError(f"The database {said}: {error}") from error
