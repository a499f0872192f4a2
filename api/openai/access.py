"""Access to the proxy: keys, scopes and rates of its views, and errors in OpenAI's format."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import cast

from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.response import Response

from api.rest.access import check_rate, check_scope, key_in, note_write
from api.rest.problems import MEDIA_TYPE, Problem, as_json, problem_of, response_to
from isolation import row_access
from language.errors import PalaceError
from llm.errors import LLMError
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.throttling import Rate

# Below it are the addresses of OpenAI's API, and some of our own.
PREFIX = "/v1/"

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
HANDLED_ERRORS = (Problem, PalaceError, LLMError, OperationalError, InterfaceError)
View = Callable[..., HttpResponseBase]


class BadRequest(Problem):
    """A 400 that names the wrong parameter."""

    def __init__(self, detail: str, *, param: str | None = None, code: str = "bad_input") -> None:
        super().__init__(400, code, detail)
        self.param = param


def error_body(
    sentence: str, code: str, status: int, param: str | None = None
) -> dict[str, object]:
    usual = "server_error" if status >= 500 else "invalid_request_error"
    kind = _TYPES.get(status, usual)
    return {"error": {"message": sentence, "type": kind, "code": code, "param": param}}


def as_openai(problem: Problem) -> JsonResponse:
    param = getattr(problem, "param", None)
    body = error_body(str(problem.detail), problem.code, problem.status_code, param)
    return response_to(problem, body)


def in_both_formats(problem: Problem) -> JsonResponse:
    """A problem with OpenAI's `error` beside it, where clients of either kind may ask."""
    error = error_body(str(problem.detail), problem.code, problem.status_code)
    return response_to(problem, {**problem.body(), **error}, MEDIA_TYPE)


def as_json_at(path: str, problem: Problem) -> JsonResponse:
    """The error of a request that no view answered, for the clients that may ask at this path."""
    return in_both_formats(problem) if path.startswith(PREFIX) else as_json(problem)


def with_openai_errors(view: View, said: str) -> View:
    """A REST view at an address that OpenAI's API has too: its problems also have `error`.

    Args:
        said: The sentence before an invalid request's error: it may be one of OpenAI's requests.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: str, **kwargs: str) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if isinstance(response, Response) and response.content_type == MEDIA_TYPE:
            status, detail = response.status_code, response.data["detail"]
            sentence = f"{said} {detail}" if status in (400, 405) else detail
            error = error_body(sentence, response.data["code"], status)
            response.data = {**response.data, **error}
        return response

    return answer


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
