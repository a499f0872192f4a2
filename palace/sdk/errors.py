"""What the SDK raises: one tree below PalaceError, each with a `code` and a sentence."""

from __future__ import annotations

from palace.errors import BadFilter, BadInput, EmptyQuery, FactConflict, PalaceError
from palace.working.errors import NamespaceFull, NotItsOwn, TooMuch, WorkingMemoryAway

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
    """A call that does not say whose memories it is about."""

    code = "scope_missing"

    def __init__(self, why: str = "") -> None:
        needed = "At least one of user_id, agent_id, or run_id must be provided"
        super().__init__(f"{why} {needed}." if why else needed)


class WrongPalace(PalaceError):
    """Somebody else's memories than the one's whom a Memory was made for."""

    code = "wrong_palace"

    def __init__(self) -> None:
        super().__init__("This opens one palace only, and not that one. Leave user_id out.")


class NotFoundError(PalaceError):
    """There is no such memory among the owner's, or it was deleted."""

    code = "not_found"


class LLMError(PalaceError):
    """A model did not do what was asked of it. A chat model that fails is done without."""

    code = "llm_error"


class EmbeddingError(LLMError):
    """The embedding model failed, and nothing can be searched by meaning without it."""

    code = "embedding_error"


class VectorStoreError(PalaceError):
    """The database does not answer."""

    code = "vector_store_error"


class SetupError(PalaceError):
    """What the SDK needs could not be started or made; says what to do."""

    code = "setup_error"
