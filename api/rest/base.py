"""The base view: checks key and scope, limits the rate, writes the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from api.rest import access, idempotency
from api.rest.access import check_rate, check_scope
from api.rest.known_fields import refuse_unknown
from isolation import row_access
from palace.models import IdempotentWrite, Palace
from settings_app import audit, throttling
from settings_app.api_keys import ApiKey
from settings_app.throttling import Rate

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


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
    # What ends with the answer.
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
        reader = serializer(data=self.request.data if data is None else data)
        reader.is_valid(raise_exception=True)
        return cast(dict[str, Any], reader.validated_data)

    def read_query(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """Validate the query string; the last of repeated names counts."""
        return self.read(serializer, self.request.query_params.dict())

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """No row is accessible until the key is known, nor after the answer."""
        with row_access.deny_all(), ExitStack() as self._held:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self._known_key = self.key
        self._count(request)
        check_scope(self.key, self.scope_of(str(request.method)))
        refuse_unknown(self, request)
        if self._writes():
            claimed = idempotency.claim(request, self.key, self._held)
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
            idempotency.settle(self._write, response)
        if self._known_key is not None and self._writes():
            self._note(self._known_key, finished.status_code)
        return finished

    def cost_of(self, fields: Mapping[str, Any]) -> int:
        """How many requests this read counts for, by its unchecked fields; without its size."""
        return throttling.cost_of(results=number_in(fields, "limit", self.usual_results))

    def _count(self, request: Request) -> None:
        size = throttling.cost_of_body(request)
        try:
            cost = size - 1 + (1 if self._writes() else self.cost_of(_fields_of(request)))
        except APIException:
            # What cannot be read is refused, and counts.
            self._rate = throttling.count_request(self.key, size)
            check_rate(self._rate)
            raise
        self._rate = throttling.count_request(self.key, cost)
        check_rate(self._rate)

    def _writes(self) -> bool:
        return self.request.method not in SAFE and not self.only_reads

    def _note(self, key: ApiKey, status: int) -> None:
        audit.note(
            key,
            door="rest",
            action=str(self.request.method),
            path=self.request.path,
            status=status,
        )


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
