"""What every address of the API has: a key with the right scope, a rate, an audit line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from api.rest import idempotency, palaces
from api.rest.problems import Problem
from isolation import reach
from palace.models import IdempotentWrite, Palace
from settings_app import audit, rates
from settings_app.api_keys import ApiKey
from settings_app.rates import Rate

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


class ApiView(APIView):
    """Names the scope that each method needs; what it does not name needs what is usual."""

    scopes: ClassVar[Mapping[str, str]] = {}
    # A search is sent as POST and changes nothing: no audit, no idempotency key.
    only_reads: ClassVar[bool] = False

    _known_key: ApiKey | None = None
    _write: IdempotentWrite | None = None
    _rate: Rate | None = None

    @property
    def write(self) -> IdempotentWrite | None:
        """What the request's `Idempotency-Key` has claimed, if it has one."""
        return self._write

    @property
    def key(self) -> ApiKey:
        return cast(ApiKey, self.request.auth)

    def scope_of(self, method: str) -> str:
        usual = "read" if method in SAFE or self.only_reads else "write"
        return self.scopes.get(method, usual)

    def palace(self, user_id: str | None) -> Palace | None:
        """The palace that a request means, if there is one."""
        return palaces.palace_of(self.key, user_id)

    def palace_made(self, user_id: str | None) -> Palace:
        return palaces.palace_made(self.key, user_id)

    def read(self, serializer: type[Serializer[Any]], given: Any = None) -> dict[str, Any]:
        """The body, or what else was given, as the serializer understands it.

        Raises:
            ValidationError: a field is wrong; says which and how.
        """
        reader = serializer(data=self.request.data if given is None else given)
        reader.is_valid(raise_exception=True)
        return cast(dict[str, Any], reader.validated_data)

    def read_query(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """What follows the `?`; a name that comes twice counts once, the last time."""
        return self.read(serializer, self.request.query_params.dict())

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Nothing is within reach until the key is known, and nothing more after the answer."""
        with reach.nobody():
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self._known_key = self.key
        self._count()
        self._check_scope(str(request.method))
        if self._writes():
            claimed = idempotency.claim(request, self.key)
            if isinstance(claimed, Response):
                raise _Answered(claimed)
            self._write = claimed

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, _Answered):
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

    def _count(self) -> None:
        self._rate = rates.count(self.key)
        if self._rate is not None and not self._rate.allowed:
            raise Problem(
                429,
                "too_many_requests",
                f"A key may send {self._rate.limit} requests in a while, and this one has. Ask "
                f"again in {self._rate.reset_s} seconds.",
            )

    def _check_scope(self, method: str) -> None:
        scope = self.scope_of(method)
        if not self.key.may(scope):
            said = f"This key may not {scope}; make one with the scope “{scope}”."
            raise Problem(403, "missing_scope", said)

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


class _Answered(Exception):
    """The answer is there already."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response
