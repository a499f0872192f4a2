"""Convert a server's error responses to exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from loci_client import errors
from loci_client.errors import PalaceError

_OWN_CODES: dict[str, type[PalaceError]] = {
    kind.code: kind
    for kind in (
        *(errors.ScopeError, errors.WrongPalace, errors.NotFoundError, errors.BadInput),
        *(errors.BadFilter, errors.EmptyQuery, errors.TooMuch, errors.NamespaceFull),
        *(errors.NotItsOwn, errors.WorkingMemoryAway, errors.LLMError, errors.EmbeddingError),
        *(errors.VectorStoreError, errors.SetupError, errors.TooManyRequests),
        *(errors.FactConflict, errors.AmbiguousSession),
    )
}
# The server's codes are more specific; in palace.sdk, and so here, they share a class.
_FINER_CODES: dict[str, type[PalaceError]] = {
    "bad_json": errors.BadInput,
    "unstorable_text": errors.BadInput,
    "no_such_fact": errors.NotFoundError,
    "too_large": errors.TooMuch,
    "model_unavailable": errors.EmbeddingError,
    "database_unavailable": errors.VectorStoreError,
}
# For unknown codes.
_STATUSES: dict[int, type[PalaceError]] = {
    400: errors.BadInput,
    401: errors.KeyRefused,
    403: errors.KeyRefused,
    404: errors.NotFoundError,
    413: errors.TooMuch,
    429: errors.TooManyRequests,
    502: errors.ServerAway,
    503: errors.ServerAway,
    504: errors.ServerAway,
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
    return errors.BadAnswer(f"{said}. Check the client's base_url.", **more)


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
