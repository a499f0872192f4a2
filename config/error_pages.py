"""Error pages (400, 403, 404, 413, 500), or JSON for programs.

Under ASGI Django renders them in a thread without a request. Their database queries, such as
for the signed-in user, would leave a connection open.
"""

from __future__ import annotations

import sys

from django.core.exceptions import RequestDataTooBig
from django.db import close_old_connections, connection
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import defaults

from api.openai.errors import PREFIX, as_json_at, in_both_formats
from api.rest.problems import Problem, problem_of
from config.middleware import is_api_request, match_of, unavailable

BROKEN = "Something broke here, and the fault is ours. Try again in a moment."
DAMAGED = "The request cannot be understood; look at its address, its headers and its host."
NOT_ALLOWED = "This may not be done so."
NO_ADDRESS = "There is no such address. /api/docs/ has all there are."
WITHOUT_PREFIX = "There is no such address: give OpenAI's clients Loci's with /v1 at its end."


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """An oversized request gets its own page, and htmx leaves the form's text alone."""
    if is_api_request(request):
        problem = _large(exception) or Problem(400, "bad_input", DAMAGED)
        return as_json_at(request.path_info, problem)
    if isinstance(exception, RequestDataTooBig):
        return HttpResponse(loader.get_template("413.html").render(), status=413)
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api_request(request):
        return in_both_formats(Problem(404, "not_found", _no_address(request.path_info)))
    response = defaults.page_not_found(request, exception)
    _let_go()
    return response


def _no_address(path: str) -> str:
    found = match_of(f"{PREFIX.rstrip('/')}{path}")
    return WITHOUT_PREFIX if found and "proxy" in found.namespaces else NO_ADDRESS


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api_request(request):
        return as_json_at(request.path_info, Problem(403, "not_allowed", NOT_ALLOWED))
    response = defaults.permission_denied(request, exception)
    _let_go()
    return response


def broken(request: HttpRequest) -> HttpResponse:
    """An unexpected error, or an unavailable service."""
    error = sys.exc_info()[1]
    problem = problem_of(error) if isinstance(error, Exception) else None
    if problem is None or problem.status_code not in (503, 507):
        problem = Problem(500, "internal_error", BROKEN)
    if problem.status_code == 500 and not is_api_request(request):
        return defaults.server_error(request)
    return unavailable(request, problem)


def _large(exception: Exception) -> Problem | None:
    return problem_of(exception) if isinstance(exception, RequestDataTooBig) else None


def _let_go() -> None:
    # Within a transaction the connection is still in use.
    if not connection.in_atomic_block:
        close_old_connections()
