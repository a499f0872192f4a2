"""The client's errors: those of palace.sdk, and network errors; and how a server's error responses
become them.

Each has a stable `code`, and a message that says what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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


class QuotaExceeded(PalaceError):
    """The palace's quota is used up; nothing was stored."""

    code = "quota_exceeded"


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


_OWN_CODES: dict[str, type[PalaceError]] = {
    kind.code: kind
    for kind in (
        *(ScopeError, WrongPalace, NotFoundError, BadInput),
        *(BadFilter, EmptyQuery, TooMuch, NamespaceFull),
        *(NotItsOwn, WorkingMemoryAway, LLMError, EmbeddingError),
        *(VectorStoreError, SetupError, TooManyRequests),
        *(FactConflict, AmbiguousSession, QuotaExceeded),
    )
}
# The server's codes are more specific; in palace.sdk, and so here, they share a class.
_FINER_CODES: dict[str, type[PalaceError]] = {
    "bad_json": BadInput,
    "unstorable_text": BadInput,
    "no_such_fact": NotFoundError,
    "too_large": TooMuch,
    "model_unavailable": EmbeddingError,
    "database_unavailable": VectorStoreError,
    "storage_full": VectorStoreError,
}
# For unknown codes.
_STATUSES: dict[int, type[PalaceError]] = {
    400: BadInput,
    401: KeyRefused,
    403: KeyRefused,
    404: NotFoundError,
    413: TooMuch,
    429: TooManyRequests,
    502: ServerAway,
    503: ServerAway,
    504: ServerAway,
}
_PASSING_STATUSES = {429, 502, 503, 504}
_PASSING_CODES = {"idempotency_in_progress"}


def problem_of(status: int, headers: Mapping[str, str], body: object) -> PalaceError:
    """
    Args:
        status: 300 or above.
        body: The parsed JSON; None if it is not JSON.
    """
    after_s = retry_after_s(headers.get("retry-after", ""))
    if not isinstance(body, Mapping) or not isinstance(body.get("code"), str):
        return _not_ours(status, headers, after_s)
    code, fields = body["code"], body.get("errors")
    known = _OWN_CODES.get(code) or _FINER_CODES.get(code)
    kind = known or _STATUSES.get(status, PalaceError)
    return kind(
        str(body.get("detail") or f"The server answered {status}, and did not say why."),
        code="" if known else code,
        status=status,
        errors=fields if isinstance(fields, Mapping) else None,
        retry_after_s=after_s,
        may_pass=status in _PASSING_STATUSES or code in _PASSING_CODES,
    )


def _not_ours(status: int, headers: Mapping[str, str], after_s: float | None) -> PalaceError:
    """The error of a response from something in between, such as a proxy."""
    more: dict[str, Any] = {"status": status, "retry_after_s": after_s}
    if status in _PASSING_STATUSES:
        kind = _STATUSES[status]
        return kind(f"The server answered {status}. Try later.", **more, may_pass=True)
    said = f"What answers there is no Loci that this client understands: status {status}"
    if target := headers.get("location"):
        said = f"{said}, which leads on to {target}"
    return BadAnswer(f"{said}. Check the client's base_url.", **more)


def retry_after_s(text: str) -> float | None:
    """Parse Retry-After, seconds or a date, to seconds from now; None if invalid."""
    if text.strip().isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
