"""The client's errors: those of palace.sdk, and network errors.

Each has a stable `code`, and a message that says what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PalaceError(Exception):
    """The base of all errors.

    Attributes:
        code: Stable; the class's, or the server's if no class has it.
        status: The HTTP status; None without a response.
        errors: By field, for invalid fields.
        retry_after_s: The server's Retry-After; None without one.
        may_pass: Whether the same call may succeed later. The client's retries are over by then.
    """

    code = "palace_error"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status: int | None = None,
        errors: Mapping[str, Any] | None = None,
        retry_after_s: float | None = None,
        may_pass: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.status = status
        self.errors = dict(errors or {})
        self.retry_after_s = retry_after_s
        self.may_pass = may_pass


class ScopeError(PalaceError):
    """The call names no scope."""

    code = "scope_missing"


class WrongPalace(PalaceError):
    """The call names another palace than the key's."""

    code = "wrong_palace"


class NotFoundError(PalaceError):
    """The owner has no such memory, or it was deleted."""

    code = "not_found"


class BadInput(PalaceError):
    """An argument is invalid; the message says which, and what is allowed."""

    code = "bad_input"


class FactConflict(PalaceError):
    """Another memory already states the only possible value; nothing was changed."""

    code = "fact_conflict"


class AmbiguousSession(PalaceError):
    """Several users have such a session and no user_id was given; nothing was deleted."""

    code = "ambiguous_session"


class BadFilter(PalaceError):
    """The filter is invalid."""

    code = "bad_filter"


class EmptyQuery(PalaceError):
    """The query is blank."""

    code = "empty_query"


class TooMuch(PalaceError):
    """The data or request is too large; nothing was changed."""

    code = "too_much"


class NamespaceFull(PalaceError):
    """The namespace is full; nothing was changed."""

    code = "namespace_full"


class NotItsOwn(PalaceError):
    """The entry is in another namespace, where it can only be read."""

    code = "not_its_own"


class WorkingMemoryAway(PalaceError):
    """The server's Redis does not respond; the operation may or may not have happened."""

    code = "working_memory_away"


class LLMError(PalaceError):
    """A model call failed. Failures of chat models are not raised: local rules take over."""

    code = "llm_error"


class EmbeddingError(LLMError):
    """The embedding model failed; search by meaning needs it."""

    code = "embedding_error"


class VectorStoreError(PalaceError):
    """The server's database does not respond."""

    code = "vector_store_error"


class SetupError(PalaceError):
    """The client's arguments are invalid; the message says what to do."""

    code = "setup_error"


class KeyRefused(PalaceError):
    """The key is unknown to the server, or lacks the scope."""

    code = "key_refused"


class TooManyRequests(PalaceError):
    """The key's rate limit is exceeded; see `retry_after_s`."""

    code = "too_many_requests"


class ServerAway(PalaceError):
    """The server does not respond, or not in time; the call may or may not have happened."""

    code = "server_away"


class BadAnswer(PalaceError):
    """The response is not from Loci, or from an incompatible version."""

    code = "bad_answer"
