"""`Idempotency-Key`: a repeated write gets its first response and is not executed again.

As draft-ietf-httpapi-idempotency-key-header has it: the same key with another request is refused
(422), and so is one whose first request is still under way (409).
"""

from __future__ import annotations

import hashlib
import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from api.rest.problems import MEDIA_TYPE, Problem
from language.storable import is_storable
from palace.models import WRITES_KEPT_FOR, IdempotentWrite
from palace.models.locks import held_if_free
from settings_app.api_keys import ApiKey

logger = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
# A claim whose lock is free belongs to a process that has died, or that has lost its connection to
# the database: by now such a process has noticed.
GIVEN_UP_AFTER = timedelta(seconds=10)
# Longer than any write takes: by now its process does nothing any more.
GIVEN_UP_THOUGH_HELD = timedelta(minutes=2)
MOST_CHARS = 200
# Version 0.6.0 took a body byte by byte, and wrote hexadecimal digits: its fingerprints are not
# compared, so that what was asked before an upgrade can be repeated after it.
_FORMER_LENGTH = 64
# The response headers that are stored with the body.
_HEADERS = ("ETag", "Location")


def claim(request: Request, key: ApiKey, held: ExitStack) -> IdempotentWrite | Response | None:
    """The stored response, a new claim to settle, or None without the header.

    Args:
        held: Keeps the write's lock while it is executed. The lock ends with the process, so that
            however slow a write is, a repeated request waits for it and not for a dead one.

    Raises:
        Problem: 400, 409 or 422.
    """
    name = request.headers.get(HEADER)
    if name is None:
        return None
    if not 1 <= len(name) <= MOST_CHARS or not is_storable(name):
        raise Problem(400, "bad_input", f"{HEADER} has 1 to {MOST_CHARS} characters.")
    fingerprint = _fingerprint(request, key)
    is_ours = held.enter_context(_lock(f"write {key.owner_id} {name}"))
    writes = IdempotentWrite.objects.filter(owner=key.owner_id, key=name)
    with transaction.atomic():
        writes.filter(claimed_at__lt=timezone.now() - WRITES_KEPT_FOR).delete()
        write, new = writes.select_for_update().get_or_create(
            owner_id=key.owner_id, key=name, defaults={"fingerprint": fingerprint}
        )
        if new:
            return write
        _check(write, fingerprint, GIVEN_UP_AFTER if is_ours else GIVEN_UP_THOUGH_HELD)
        if write.status is None:
            # The process that claimed it died, or its answer was forgotten: reuse the row, and the
            # ids derived from it.
            write.claimed_at, write.fingerprint = timezone.now(), fingerprint
            write.save(update_fields=["claimed_at", "fingerprint"])
            return write
    headers = {**write.headers, REPLAYED: "true"}
    response = Response(write.body, write.status, headers=headers)
    if write.status >= 400:
        response.content_type = MEDIA_TYPE
    return response


def settle(write: IdempotentWrite, response: Response) -> None:
    """Store the response, except for what may be retried.

    After a server's error the claim stays, for the next request to resume: a part of the write may
    have been stored, under ids that come from the claim.

    If the database cannot write, the claim stays: the request can be repeated in ten seconds.
    """
    try:
        with transaction.atomic():
            _settle(write, response)
    except OperationalError as error:
        logger.warning("The response to a write is not kept: %s", error)


def _settle(write: IdempotentWrite, response: Response) -> None:
    if response.status_code == 429:
        write.delete()
        return
    if response.status_code >= 500:
        abandoned_at = write.claimed_at - GIVEN_UP_THOUGH_HELD
        IdempotentWrite.objects.filter(pk=write.pk).update(claimed_at=abandoned_at)
        return
    shown = response.data
    write.body = None if shown is None else json.loads(JSONRenderer().render(shown))
    write.status = response.status_code
    write.headers = {name: response[name] for name in _HEADERS if name in response}
    # A deletion may have taken the claim over: its words must not come back.
    IdempotentWrite.objects.filter(pk=write.pk, claimed_at=write.claimed_at).update(
        status=write.status, body=write.body, headers=write.headers
    )


@contextmanager
def _lock(name: str) -> Iterator[bool]:
    with ExitStack() as held:
        yield held.enter_context(held_if_free(name))
        try:
            held.close()
        except (OperationalError, InterfaceError):
            # The database has ended the session, and the lock with it.
            logger.info("The lock of a write ended with its session.")


def _check(write: IdempotentWrite, fingerprint: str, given_up_after: timedelta) -> None:
    is_comparable = write.fingerprint and len(write.fingerprint) != _FORMER_LENGTH
    if is_comparable and write.fingerprint != fingerprint:
        said = f"This {HEADER} was used for another request. Use a new one for each write."
        raise Problem(422, "idempotency_mismatch", said)
    if write.status is None and timezone.now() - write.claimed_at < given_up_after:
        said = "The first request with this key is still under way. Ask again in a moment."
        raise Problem(409, "idempotency_in_progress", said, headers={"Retry-After": "2"})


def _fingerprint(request: Request, key: ApiKey) -> str:
    """
    Raises:
        APIException: the body cannot be read.
    """
    # Not `request.body`, which Django refuses above the size of a page's form.
    body = json.dumps(request.data, sort_keys=True)
    # A key that only writes is answered less, so it must not get a reader's answer.
    scope = () if key.may("read") else ("only writes",)
    parts = (str(key.subject), str(request.method), request.get_full_path(), body, *scope)
    return b64encode(hashlib.sha256("\0".join(parts).encode()).digest()).decode()
