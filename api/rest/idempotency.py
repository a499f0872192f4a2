"""`Idempotency-Key`: a repeated write gets its first response and is not executed again.

As draft-ietf-httpapi-idempotency-key-header has it: the same key with another request is refused
(422), and so is one whose first request is still under way (409).
"""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import timedelta

from django.db import OperationalError, transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.problems import MEDIA_TYPE, Problem
from language.storable import is_storable
from palace.models import WRITES_KEPT_FOR, IdempotentWrite
from settings_app.api_keys import ApiKey

logger = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
# Longer than any write takes: an older claim belongs to a dead process.
GIVEN_UP_AFTER = timedelta(minutes=2)
MOST_CHARS = 200
# The response headers that are stored with the body.
_HEADERS = ("ETag", "Location")


def claim(request: Request, key: ApiKey) -> IdempotentWrite | Response | None:
    """The stored response, a new claim to settle, or None without the header.

    Raises:
        Problem: 400, 409 or 422.
    """
    name = request.headers.get(HEADER)
    if name is None:
        return None
    if not 1 <= len(name) <= MOST_CHARS or not is_storable(name):
        raise Problem(400, "bad_input", f"{HEADER} has 1 to {MOST_CHARS} characters.")
    fingerprint = _fingerprint(request, key)
    writes = IdempotentWrite.objects.filter(owner=key.owner_id, key=name)
    with transaction.atomic():
        writes.filter(claimed_at__lt=timezone.now() - WRITES_KEPT_FOR).delete()
        write, new = writes.select_for_update().get_or_create(
            owner_id=key.owner_id, key=name, defaults={"fingerprint": fingerprint}
        )
        if new:
            return write
        _check(write, fingerprint)
        if write.status is None:
            # The process that claimed it died: reuse the row, and the ids derived from it.
            write.claimed_at = timezone.now()
            write.save(update_fields=["claimed_at"])
            return write
    headers = {**write.headers, REPLAYED: "true"}
    response = Response(write.body, write.status, headers=headers)
    if write.status >= 400:
        response.content_type = MEDIA_TYPE
    return response


def settle(write: IdempotentWrite, response: Response) -> None:
    """Store the response, except for server errors, which may be retried.

    If the database cannot write, the claim stays: the request can be repeated in two minutes.
    """
    try:
        with transaction.atomic():
            _settle(write, response)
    except OperationalError as error:
        logger.warning("The response to a write is not kept: %s", error)


def _settle(write: IdempotentWrite, response: Response) -> None:
    if response.status_code >= 500 or response.status_code == 429:
        write.delete()
        return
    shown = response.data
    write.body = None if shown is None else json.loads(JSONRenderer().render(shown))
    write.status = response.status_code
    write.headers = {name: response[name] for name in _HEADERS if name in response}
    # A deletion may have removed the row: its words must not come back.
    IdempotentWrite.objects.filter(pk=write.pk, claimed_at=write.claimed_at).update(
        status=write.status, body=write.body, headers=write.headers
    )


def _check(write: IdempotentWrite, fingerprint: str) -> None:
    if write.fingerprint != fingerprint:
        said = f"This {HEADER} was used for another request. Use a new one for each write."
        raise Problem(422, "idempotency_mismatch", said)
    if write.status is None and timezone.now() - write.claimed_at < GIVEN_UP_AFTER:
        said = "The first request with this key is still under way. Ask again in a moment."
        raise Problem(409, "idempotency_in_progress", said, headers={"Retry-After": "2"})


def _fingerprint(request: Request, key: ApiKey) -> str:
    """
    Raises:
        APIException: the body cannot be read.
    """
    # Not `request.body`, which Django refuses above the size of a page's form.
    body = json.dumps(request.data, sort_keys=True)
    parts = (str(key.subject), str(request.method), request.get_full_path(), body)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
