"""Middleware: admission, row access, API URLs with or without a slash at the end, error pages (400,
403, 404, 413, 500) or JSON for programs, and the log of requests, each with an id.

Under ASGI Django renders error pages in a thread without a request. Their database queries, such as
for the signed-in user, would leave a connection open.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections, connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.template import loader
from django.urls import ResolverMatch, resolve
from django.views import defaults

from api.mcp.http import PATHS as MCP_PATHS
from api.oauth.http import PATHS as OAUTH_PATHS
from api.openai.access import PREFIX, as_json_at, in_both_formats
from api.rest.problems import Problem, note, problem_of
from config import metrics
from isolation import row_access
from isolation.row_access import NO_ACCESS, PERSON, Access
from llm.request_admission import (
    PAGES_YIELD_S,
    READS_YIELD_S,
    WRITES_YIELD_S,
    TooBusy,
    admitted,
    caller_with,
    note_caller,
)
from settings_app import request_id
from settings_app.sessions import SessionStore

# Only programs use paths below these, except for the pages among them.
_PREFIXES = ("/v1/", "/api/")
_PROBES = ("/health", "/metrics")
Application = Callable[[Any, Any, Any], Awaitable[None]]
# There are fewer addresses without a part that varies.
MOST_FIXED = 1_000
_fixed: dict[tuple[str, str], ResolverMatch] = {}


def is_api_request(request: HttpRequest) -> bool:
    """Whether a program sent the request, which expects errors as JSON."""
    accepted = request.headers.get("Accept", "")
    return (
        request.path_info.startswith(_PREFIXES)
        or request.headers.get("Authorization", "").lower().startswith("bearer ")
        or ("json" in accepted and "html" not in accepted)
        or request.content_type == "application/json"
    )


class OneThreadHandler(ASGIHandler):
    """An ASGI application whose middleware and views run in one thread for each request.

    None of them is asynchronous. Django's own handler leaves the thread and comes back before and
    after almost each middleware; on a busy server each of these steps waits for Python's lock.
    """

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        # The access to rows ends here: a streamed body, which is sent later, opens its own.
        return await sync_to_async(self.get_response)(request)

    def resolve_request(self, request: HttpRequest) -> Any:
        """Each request is resolved here, where a slash may be missing, and for the log."""
        found = match_at(request.path_info)
        if found is None:
            return super().resolve_request(request)
        request.resolver_match = found
        return found


def few_at_a_time(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Requests wait for their turn, and only so long for a lock; probes do not, which ask whether
    others would.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(_PROBES):
            return get_response(request)
        try:
            with (
                admitted(yields_s=yields_s(request), caller=caller_with(_credential(request))),
                row_access.lock_wait(settings.LOCK_WAIT_S),
            ):
                return get_response(request)
        except TooBusy as error:
            # Not for Django to handle, which logs each with its stack.
            return unavailable(request, cast("Problem", problem_of(error)))

    return answer


def _credential(request: HttpRequest) -> str:
    """The header with the key, or the session, before anybody looks whether it is one."""
    session = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
    return request.headers.get("Authorization", "") or session


def unavailable(request: HttpRequest, problem: Problem) -> HttpResponse:
    if is_api_request(request):
        return as_json_at(request.path_info, problem)
    page = loader.get_template("503.html").render({"sentence": problem.detail})
    response = HttpResponse(page, status=problem.status_code, headers=problem.headers)
    note(problem, response)
    return response


def yields_s(request: HttpRequest) -> float:
    """How long the request lets others go first; programs POST some reads, such as recalls."""
    match = match_of(request.path_info)
    view = getattr(match.func, "cls", None) if match else None
    is_safe = request.method in ("GET", "HEAD", "OPTIONS")
    if view is not None and (is_safe or getattr(view, "only_reads", False)):
        return READS_YIELD_S
    return PAGES_YIELD_S if is_safe else WRITES_YIELD_S


class OptionalSlash(CommonMiddleware):
    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:  # type: ignore[override]
        if is_api_request(request) and not match_at(request.path_info):
            _use_other_spelling(request)
        return super().process_request(request)


def _other_spelling(path: str) -> str:
    return path.removesuffix("/") if path.endswith("/") else f"{path}/"


def match_of(path: str) -> ResolverMatch | None:
    """The view of this address, with or without a slash at its end."""
    return match_at(path) or match_at(_other_spelling(path))


def match_at(path: str) -> ResolverMatch | None:
    """The view of exactly this address.

    One without a part that varies is looked for among all patterns only once.
    """
    key = settings.ROOT_URLCONF, path
    found = _fixed.get(key)
    if found is None:
        with contextlib.suppress(Http404):
            found = resolve(path)
        if found and not found.args and not found.kwargs and len(_fixed) < MOST_FIXED:
            _fixed[key] = found
    return found


def _use_other_spelling(request: HttpRequest) -> None:
    path = request.path_info
    other = _other_spelling(path)
    if match_at(other):
        before = request.path.removesuffix(path)
        request.path_info, request.path = other, f"{before}{other}"


def without_row_access(application: Application) -> Application:
    """An ASGI application whose requests begin without access to rows.

    A pipelined request runs in the context of the one before it.
    """

    # The server calls an object without required arguments as a factory of applications.
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        with row_access.deny_all():
            await application(scope, receive, send)

    return answer


def without_cookies_of_probes(application: Application) -> Application:
    """An ASGI application that does not look up who asks for health and metrics.

    The database has the sessions, and may be away just then.
    """

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_PROBES):
            headers = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
            scope = {**scope, "headers": headers}
        await application(scope, receive, send)

    return answer


def access_of_signed_in_user(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Access to the signed-in user's palace; API keys open theirs elsewhere."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        with row_access.use(access_to(request)):
            note_seen(request)
            return get_response(request)

    return answer


def note_seen(request: HttpRequest) -> None:
    if request.user.is_authenticated and isinstance(request.session, SessionStore):
        note_caller(_credential(request))
        request.session.note_seen()


def access_to(request: HttpRequest) -> Access:
    owner_id = request.user.pk
    return Access(PERSON, owner=owner_id, subject="") if owner_id else NO_ACCESS


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


# Operators filter and level the lines of requests by this name.
logger = logging.getLogger("config.request_log")

_HEADER = request_id.HEADER.lower().encode()
# APIs by the namespace of the URL; all others are pages.
_DOORS = {"api": "rest", "mem0": "mem0", "proxy": "openai", "admin": "admin"}


def with_request_id(application: Application) -> Application:
    """An ASGI application whose requests have an id, which the answer has, too."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        sent = dict(scope.get("headers", ())).get(_HEADER, b"").decode("latin-1")
        with request_id.use(request_id.taken_or_made(sent)):
            request = _Request(scope)
            try:
                await application(scope, receive, partial(request.send, send))
            finally:
                request.note()

    return answer


class _Request:
    """What is known of a request after its response."""

    def __init__(self, scope: Any) -> None:
        self._scope = scope
        self._started = time.perf_counter()
        # Without a response, it failed or the client disconnected.
        self._status = 500
        self._id = request_id.current()

    async def send(self, send: Callable[[Any], Any], message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), (_HEADER, self._id.encode())]
            message = {**message, "headers": headers}
        await send(message)

    def note(self) -> None:
        seconds = time.perf_counter() - self._started
        door, address = _place_of(self._scope["path"])
        # Clients can make up any number of methods.
        method = self._scope["method"] if self._scope["method"] in _METHODS else "OTHER"
        fields = {
            "door": door,
            "address": address,
            "method": method,
            "status": self._status,
            "ms": round(seconds * 1000, 1),
        }
        metrics.count_request(door, method, self._status, seconds)
        # Not the path: people's names may be part of it.
        logger.info("%s %s %d", method, address, self._status, extra={"fields": fields})


_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


def _place_of(path: str) -> tuple[str, str]:
    """The API of a request, and the name of its address."""
    if path in MCP_PATHS:
        return "mcp", "mcp"
    if path.rstrip("/") in OAUTH_PATHS:
        return "oauth", "oauth"
    if path.removeprefix("/").startswith(settings.STATIC_URL.removeprefix("/")):
        return "static", "static"
    match = match_of(path)
    if match is None:
        return "unknown", "unknown"
    if path.startswith("/health"):
        return "health", match.view_name
    known = [_DOORS[name] for name in match.namespaces if name in _DOORS]
    return (known[0] if known else "pages"), match.view_name
