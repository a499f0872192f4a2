"""Our problems in the error format of OpenAI's clients."""

from __future__ import annotations

from django.http import JsonResponse

from api.rest.problems import Problem

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
