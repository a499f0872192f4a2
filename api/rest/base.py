"""The base view: checks key, scope and fields, limits the rate, repeats no write, audits.

A request with a name that its endpoint does not document is refused. Ignored, it would widen a
search, or delete more than was meant, and nobody would notice. What an endpoint takes is what its
`extend_schema` says, so the reference cannot differ from it.

With an `Idempotency-Key` a repeated write gets its first response and is not executed again, as
draft-ietf-httpapi-idempotency-key-header has it: the same key with another request is refused
(422), and so is one whose first request is still under way (409).
"""

from __future__ import annotations

import hashlib
import json
import logging
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from heapq import nsmallest
from typing import Any, ClassVar, cast

from django.db import InterfaceError, OperationalError, transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from api.rest import access
from api.rest.access import check_rate, check_scope, note_write
from api.rest.problems import MEDIA_TYPE, Problem
from isolation import row_access
from language.storable import is_storable
from palace.models import WRITES_KEPT_FOR, IdempotentWrite, Palace
from palace.models.concurrency import held_if_free
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.throttling import Rate

logger = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_REPLAYED = "Idempotency-Replayed"
# A claim whose lock is free belongs to a process that has died, or that has lost its connection to
# the database: by now such a process has noticed.
GIVEN_UP_AFTER = timedelta(seconds=10)
# Longer than any write takes: by now its process does nothing any more.
GIVEN_UP_THOUGH_HELD = timedelta(minutes=2)
MOST_KEY_CHARS = 200
# Version 0.6.0 took a body byte by byte, and wrote hexadecimal digits: its fingerprints are not
# compared, so that what was asked before an upgrade can be repeated after it.
_FORMER_LENGTH = 64
# The response headers that are stored with the body.
_HEADERS = ("ETag", "Location")
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
# Unknown fields that an error names.
MOST_NAMED = 50
MOST_SHOWN_CHARS = 60


def claim(request: Request, key: ApiKey, held: ExitStack) -> IdempotentWrite | Response | None:
    """The stored response, a new claim to settle, or None without the header.

    Args:
        held: Keeps the write's lock while it is executed. The lock ends with the process, so that
            however slow a write is, a repeated request waits for it and not for a dead one.

    Raises:
        Problem: 400, 409 or 422.
    """
    name = request.headers.get(IDEMPOTENCY_KEY)
    if name is None:
        return None
    if not 1 <= len(name) <= MOST_KEY_CHARS or not is_storable(name):
        raise Problem(400, "bad_input", f"{IDEMPOTENCY_KEY} has 1 to {MOST_KEY_CHARS} characters.")
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
    headers = {**write.headers, IDEMPOTENCY_REPLAYED: "true"}
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
        said = f"This {IDEMPOTENCY_KEY} was used for another request. Use a new one for each write."
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


class ApiView(APIView):
    """The base of all API views; `scopes` overrides the default scope of a method."""

    scopes: ClassVar[Mapping[str, str]] = {}
    # A search is sent as POST and changes nothing: no audit, no idempotency key.
    only_reads: ClassVar[bool] = False
    # Results of a read that names no `limit`, if more than count as one request.
    usual_results: ClassVar[int] = 1

    _known_key: ApiKey | None = None
    _write: IdempotentWrite | None = None
    _rate: Rate | None = None
    # Released after the answer.
    _held: ExitStack

    @property
    def write(self) -> IdempotentWrite | None:
        """The write claimed by the request's `Idempotency-Key`, if any."""
        return self._write

    @property
    def key(self) -> ApiKey:
        return cast(ApiKey, self.request.auth)

    def scope_of(self, method: str) -> str:
        usual = "read" if method in SAFE or self.only_reads else "write"
        return self.scopes.get(method, usual)

    def palace(self, user_id: str | None) -> Palace | None:
        """The request's palace, if it exists."""
        return access.palace_of(self.key, user_id)

    def palace_made(self, user_id: str | None) -> Palace:
        return access.palace_made(self.key, user_id)

    def read(self, serializer: type[Serializer[Any]], data: Any = None) -> dict[str, Any]:
        """Validate the body, or `data`, with the serializer.

        Raises:
            ValidationError: a field is invalid.
        """
        data = self.request.data if data is None else data
        if data is None:  # Only a serializer that was made with data can say that there is none.
            serializer(data=data).is_valid(raise_exception=True)
        # mypy does not accept classes as hashable keys.
        kind: Any = serializer
        return cast(dict[str, Any], _reader(kind).run_validation(data))

    def read_query(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """Validate the query string; the last of repeated names counts."""
        return self.read(serializer, self.request.query_params.dict())

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Rows are accessible only after the key is checked, until the answer."""
        with row_access.deny_all(), ExitStack() as self._held:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self._known_key = self.key
        self._count(request)
        check_scope(self.key, self.scope_of(str(request.method)))
        refuse_unknown(self, request)
        if self._writes():
            claimed = claim(request, self.key, self._held)
            if isinstance(claimed, Response):
                raise _EarlyResponse(claimed)
            self._write = claimed

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, _EarlyResponse):
            return exc.response
        return super().handle_exception(exc)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        finished = super().finalize_response(request, response, *args, **kwargs)
        for name, value in (self._rate.headers() if self._rate else {}).items():
            finished.headers[name] = value
        finished.headers.setdefault("Cache-Control", "no-store")
        if self._write is not None:
            settle(self._write, response)
        if self._known_key is not None and self._writes():
            note_write(self._known_key, self.request, finished.status_code, door="rest")
        return finished

    def cost_of(self, fields: Mapping[str, Any]) -> int:
        """How many requests this read counts for, by its unchecked fields; without its size."""
        return throttling.cost_of(results=number_in(fields, "limit", self.usual_results))

    def _count(self, request: Request) -> None:
        size = throttling.cost_of_body(request)
        try:
            cost = size - 1 + (1 if self._writes() else self.cost_of(_fields_of(request)))
        except APIException:
            # Unreadable requests are refused, and count.
            self._rate = throttling.count_request(self.key, size)
            check_rate(self._rate)
            raise
        self._rate = throttling.count_request(self.key, cost)
        check_rate(self._rate)

    def _writes(self) -> bool:
        return self.request.method not in SAFE and not self.only_reads


@cache
def _reader(serializer: type[Serializer[Any]]) -> Serializer[Any]:
    """Validates any number of bodies: each new serializer copies all its fields, which takes longer
    than reading most bodies.
    """
    return serializer()


def number_in(fields: Mapping[str, Any], name: str, default: int) -> int:
    """A number of unchecked fields, from 0; the default if it is none."""
    value = fields.get(name)
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return int(text) if text.isdecimal() and len(text) < 10 else default


def _fields_of(request: Request) -> Mapping[str, Any]:
    """The fields of a read, as sent.

    Raises:
        APIException: the body cannot be read.
    """
    fields = request.query_params if request.method in SAFE else request.data
    return fields if isinstance(fields, Mapping) else {}


class _EarlyResponse(Exception):
    """Ends the request with a stored response."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


@dataclass(frozen=True, slots=True)
class Documented:
    """The names that an endpoint takes in the query string and in the body."""

    in_query: frozenset[str]
    in_body: frozenset[str]


def refuse_unknown(view: APIView, request: Request) -> None:
    """Check the names of the query string, and those of the body's outermost object.

    A null in the body says nothing, and passes under any name: many clients send all their fields.

    Raises:
        Problem: 400, one is unknown; the sentence says which ones there are.
        APIException: the body cannot be read.
    """
    # mypy does not accept classes as hashable keys.
    kind: Any = type(view)
    documented = _documented(kind, str(request.method))
    if documented is None:
        return
    sent = set(request.query_params)
    wrong = dict(_sentences(sent - documented.in_query, documented, request, in_body=False))
    if request.method not in ("GET", "HEAD") and isinstance(request.data, Mapping):
        sent = {name for name, value in request.data.items() if value is not None}
        wrong |= _sentences(sent - documented.in_body, documented, request, in_body=True)
    if wrong:
        errors = {name: [sentence] for name, sentence in wrong.items()}
        raise Problem(400, "unknown_field", next(iter(wrong.values())), errors=errors)


@cache
def _documented(view: type[APIView], method: str) -> Documented | None:
    """None where the view has no such method, which it answers itself."""
    name = "get" if method == "HEAD" else method.lower()
    # Where `extend_schema` leaves it.
    annotated = getattr(getattr(view, name, None), "kwargs", None)
    if annotated is None:
        return None
    schema: Any = annotated["schema"]()
    schema.view, schema.method = view(request=None, kwargs={}), name.upper()
    body = None if name == "get" else schema.get_request_serializer()
    in_query = frozenset(_names(schema.get_override_parameters()))
    return Documented(in_query, frozenset(body().fields if body else ()))


def _names(parameters: Iterable[Any]) -> Iterator[str]:
    for parameter in parameters:
        if not isinstance(parameter, OpenApiParameter):
            yield from parameter().fields
        elif parameter.location == OpenApiParameter.QUERY:
            yield parameter.name


def _sentences(
    unknown: set[str], documented: Documented, request: Request, *, in_body: bool
) -> Iterator[tuple[str, str]]:
    endpoint = f"{request.method} {request.path}"
    known = documented.in_body if in_body else documented.in_query
    elsewhere = documented.in_query if in_body else documented.in_body
    here, there = ("body", "query string") if in_body else ("query string", "body")
    takes = f"It takes {', '.join(sorted(known))}." if known else "It takes none."
    for name in nsmallest(MOST_NAMED, unknown):
        shown = name if len(name) <= MOST_SHOWN_CHARS else f"{name[:MOST_SHOWN_CHARS]}…"
        if name in elsewhere:
            yield name, f"{endpoint} takes “{shown}” in the {there}, not in the {here}."
        else:
            yield name, f"{endpoint} knows no “{shown}” in the {here}. {takes}"
