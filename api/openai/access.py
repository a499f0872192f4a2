"""Access to the proxy: keys, scopes and rates of its views, and errors in OpenAI's format."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import cast

from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from api.openai.errors import as_openai
from api.rest.access import check_rate, check_scope, key_in, note_write
from api.rest.problems import Problem, problem_of
from isolation import row_access
from language.errors import PalaceError
from llm.errors import LLMError
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.throttling import Rate

HANDLED_ERRORS = (Problem, PalaceError, LLMError, OperationalError, InterfaceError)
View = Callable[..., HttpResponseBase]


def check_key(method: str, *scopes: str, writes: bool = True) -> Callable[[View], View]:
    """Decorate a view: check the key for one of the scopes and pass it as second argument.

    Args:
        writes: Whether a POST leaves a line in the audit log.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def checked_view(request: HttpRequest, **named: str) -> HttpResponseBase:
            call = _Call(request)
            with row_access.deny_all():
                try:
                    response = view(request, call.authorize(method, scopes), **named)
                except HANDLED_ERRORS as error:
                    response = as_openai(cast(Problem, problem_of(error)))
                call.finish(response, writes=writes)
            if response.streaming:
                let_go_of_connection()
            return response

        return checked_view

    return decorate


def let_go_of_connection() -> None:
    """Release the database connection before a model's reply, which may take minutes."""
    connection.close()


class _Call:
    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._key: ApiKey | None = None
        self._rate: Rate | None = None

    def authorize(self, method: str, scopes: tuple[str, ...]) -> ApiKey:
        if self._request.method != method:
            said = f"Send {method} to this address."
            raise Problem(405, "method_not_allowed", said, headers={"Allow": method})
        key = self._key = key_in(self._request.headers.get("Authorization", ""))
        row_access.enter(key.row_access())
        self._rate = throttling.count_request(key, throttling.cost_of_body(self._request))
        check_rate(self._rate)
        if not any(key.may(scope) for scope in scopes):
            check_scope(key, scopes[0])
        return key

    def finish(self, response: HttpResponseBase, *, writes: bool) -> None:
        for name, value in (self._rate.headers() if self._rate else {}).items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        if writes and self._key is not None and self._request.method == "POST":
            note_write(self._key, self._request, response.status_code, door="proxy")
