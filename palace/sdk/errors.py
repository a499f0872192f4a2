"""The SDK's errors: subclasses of PalaceError, each with a `code` and a message."""

from __future__ import annotations

from palace.errors import (
    BadFilter,
    BadInput,
    EmptyQuery,
    FactConflict,
    NamespaceFull,
    NotItsOwn,
    PalaceError,
    TooMuch,
    WorkingMemoryAway,
)

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
    """The database does not respond."""

    code = "vector_store_error"


class SetupError(PalaceError):
    """Setup failed; the message says what to do."""

    code = "setup_error"
