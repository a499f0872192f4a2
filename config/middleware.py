"""Middleware: admission, row access of requests, API URLs with or without a slash at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.template import loader
from django.urls import ResolverMatch, resolve

from api.openai.errors import as_json_at
from api.rest.problems import Problem, problem_of
from isolation import row_access
from isolation.row_access import NO_ACCESS, PERSON, Access
from llm.admission import PAGES_YIELD_S, READS_YIELD_S, WRITES_YIELD_S, TooBusy, admitted
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
    """Requests wait for their turn; probes do not, which ask whether others would."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(_PROBES):
            return get_response(request)
        try:
            with admitted(yields_s=yields_s(request)):
                return get_response(request)
        except TooBusy as error:
            # Not for Django to handle, which logs each with its stack.
            return unavailable(request, cast("Problem", problem_of(error)))

    return answer


def unavailable(request: HttpRequest, problem: Problem) -> HttpResponse:
    if is_api_request(request):
        return as_json_at(request.path_info, problem)
    page = loader.get_template("503.html").render({"sentence": problem.detail})
    return HttpResponse(page, status=problem.status_code, headers=problem.headers)


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
        request.session.note_seen()


def access_to(request: HttpRequest) -> Access:
    owner_id = request.user.pk
    return Access(PERSON, owner=owner_id, subject="") if owner_id else NO_ACCESS
