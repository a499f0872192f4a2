"""Our problems in the error format of OpenAI's clients."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from api.rest.problems import MEDIA_TYPE, Problem, as_json

View = Callable[..., HttpResponseBase]
# Below it are the addresses of OpenAI's API, and some of our own.
PREFIX = "/v1/"

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


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
    return JsonResponse(body, status=problem.status_code, headers=problem.headers)


def in_both_formats(problem: Problem) -> JsonResponse:
    """A problem with OpenAI's `error` beside it, where clients of either kind may ask."""
    error = error_body(str(problem.detail), problem.code, problem.status_code)
    return JsonResponse(
        {**problem.body(), **error},
        status=problem.status_code,
        headers=problem.headers,
        content_type=MEDIA_TYPE,
    )


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
