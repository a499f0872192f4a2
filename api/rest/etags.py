"""ETags: conditional requests against lost updates (RFC 9110, 13.1)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Any

from django.utils.http import parse_etags
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.problems import Problem

CHANGED = "This was changed since you read it. Read it again, then repeat your change."


def etag_of(shown: Any) -> str:
    """A strong ETag of the representation."""
    written = json.dumps(shown, sort_keys=True, default=str, ensure_ascii=False)
    return f'"{hashlib.sha256(written.encode()).hexdigest()[:32]}"'


def answer(
    request: Request, shown: Any, status: int = 200, *, but: Collection[str] = ()
) -> Response:
    """The representation with its ETag, or 304 if the client already has it.

    Args:
        but: Keys that are specific to this response and not part of the ETag.
    """
    etag = etag_of({key: shown[key] for key in shown if key not in but} if but else shown)
    known = parse_etags(request.headers.get("If-None-Match", ""))
    if request.method in ("GET", "HEAD") and ("*" in known or etag in known):
        return Response(status=304, headers={"ETag": etag})
    return Response(shown, status, headers={"ETag": etag})


def check(request: Request, shown: Any) -> None:
    """Check `If-Match` against the current representation; call it under the write's lock.

    Raises:
        Problem: 412, `If-Match` names another state.
    """
    wanted = parse_etags(request.headers.get("If-Match", ""))
    if wanted and "*" not in wanted and etag_of(shown) not in wanted:
        raise Problem(412, "changed_meanwhile", CHANGED)
