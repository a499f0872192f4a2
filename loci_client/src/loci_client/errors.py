"""What the client raises: the tree of palace.sdk, and what only a server far away can do.

Each has a `code` that stays, and a sentence that says what was wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PalaceError(Exception):
    """Something the caller can understand and mend.

    Attributes:
        code: Stable, for programs; the kind's, or the server's where no kind has it.
        status: Of the answer, as HTTP has it; None where there was none.
        errors: By field, where fields were wrong.
        retry_after_s: How long the server asks to be left alone; None where it does not say.
        may_pass: Whether the same call may succeed in a moment. The client has tried by then.
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
    """A call that does not say whose memories it is about."""

    code = "scope_missing"


class WrongPalace(PalaceError):
    """The key opens one palace only, and another was asked for."""

    code = "wrong_palace"


class NotFoundError(PalaceError):
    """There is no such memory among the owner's, or it was deleted."""

    code = "not_found"


class BadInput(PalaceError):
    """An argument that cannot be used; the message says which, and what is allowed."""

    code = "bad_input"


class FactConflict(PalaceError):
    """Of what a subject has one of, another is there already; nothing was changed."""

    code = "fact_conflict"


class AmbiguousSession(PalaceError):
    """Several users have a session of this name, and none was named; nothing was deleted."""

    code = "ambiguous_session"


class BadFilter(PalaceError):
    """A filter that cannot be understood."""

    code = "bad_filter"


class EmptyQuery(PalaceError):
    """A blank question."""

    code = "empty_query"


class TooMuch(PalaceError):
    """More than may be held, or sent at once; nothing was changed."""

    code = "too_much"


class NamespaceFull(PalaceError):
    """A namespace has as many entries as it may; nothing was changed."""

    code = "namespace_full"


class NotItsOwn(PalaceError):
    """Entries are written and deleted in one's own namespace only."""

    code = "not_its_own"


class WorkingMemoryAway(PalaceError):
    """Redis does not answer the server; whatever was asked may or may not have been done."""

    code = "working_memory_away"


class LLMError(PalaceError):
    """A model did not do what was asked of it. A chat model that fails is done without."""

    code = "llm_error"


class EmbeddingError(LLMError):
    """The embedding model failed, and nothing can be searched by meaning without it."""

    code = "embedding_error"


class VectorStoreError(PalaceError):
    """The database does not answer the server."""

    code = "vector_store_error"


class SetupError(PalaceError):
    """The client cannot be made so; says what to do."""

    code = "setup_error"


class KeyRefused(PalaceError):
    """The server does not know the key, or the key may not do that."""

    code = "key_refused"


class TooManyRequests(PalaceError):
    """The key has sent as many requests as it may for now; see `retry_after_s`."""

    code = "too_many_requests"


class ServerAway(PalaceError):
    """Nobody answers at the address, or not in time; what was sent may or may not be done."""

    code = "server_away"


class BadAnswer(PalaceError):
    """What answers there is no Loci, or none that this client understands."""

    code = "bad_answer"
