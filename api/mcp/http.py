"""MCP over streamable HTTP at /mcp: check key or token, host, origin and rate, then run the server.

Requests are stateless, so any web process can answer any of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from io import BytesIO
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import InterfaceError, OperationalError
from django.http.request import validate_host
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp

from api.mcp.registry import Caller
from api.mcp.server import Context, in_thread, server_for
from api.oauth.grants import ACCESS_PREFIX, key_of_access_token
from api.oauth.registration import SCOPES, Addresses, addresses_of
from api.rest.access import CHALLENGE, bearer_in, check_rate, key_in
from api.rest.problems import Problem, as_json, problem_of
from settings_app import throttling
from settings_app.api_keys import ApiKey
from settings_app.throttling import Rate

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATHS = ("/mcp", "/mcp/")
_CALLER = "loci.caller"
_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
# The headers of an answer that a web page may read.
_EXPOSED = (
    "WWW-Authenticate",
    "Mcp-Session-Id",
    "MCP-Protocol-Version",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "Retry-After",
)
HTTPS_ONLY = "This server is reached by HTTPS. Replace a key that was sent by HTTP."
BAD_TOKEN = (
    "This token is not known, is for another address, has expired or was revoked. Connect again."  # noqa: S105
)


def with_mcp(application: Application) -> Application:
    """Wrap the application so that /mcp is served by the MCP server."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in PATHS:
            await with_cors(with_hsts(answer))(scope, receive, send)
        else:
            await application(scope, receive, send)

    return routed


def with_hsts(application: Application) -> Application:
    """Tell clients to come by HTTPS from now on, as Django's middleware does for its own views."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        lasts_s = settings.SECURE_HSTS_SECONDS
        if lasts_s and ASGIRequest(dict(scope), BytesIO()).is_secure():
            send = _with_headers(send, {"Strict-Transport-Security": f"max-age={lasts_s}"})
        await application(scope, receive, send)

    return answered


def with_cors(application: Application, origins: Collection[str] | None = None) -> Application:
    """Let pages of these origins read the answers, by default those in LOCI_CORS_ORIGINS.

    Others get the same answers without headers of CORS, which their browser then hides from them.
    """

    async def shared(scope: Scope, receive: Receive, send: Send) -> None:
        allowed = settings.CORS_ORIGINS if origins is None else origins
        origin = Headers(scope=scope).get("origin")
        if origin is None or not (origin in allowed or "*" in allowed):
            await application(scope, receive, send)
            return
        methods, headers = ("GET", "POST"), ("*",)
        inner = cast(ASGIApp, application)
        sharing = CORSMiddleware(inner, allowed, methods, headers, expose_headers=_EXPOSED)
        await sharing(scope, receive, send)

    return shared


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        request = ASGIRequest(dict(scope), BytesIO())
        check_host(request)
        check_https(request)
        check_origin(request)
        _check_method(request)
        known = addresses_of(request)
        header = request.headers.get("Authorization", "")
        cost = throttling.cost_of_body(request)
        caller, rate = await in_thread(lambda: _authenticate(header, known, cost))
    except (Problem, OperationalError, InterfaceError) as error:
        await refuse(send, error)
        return
    headers = {**_ALWAYS, **(rate.headers() if rate else {})}
    scope = {**scope, _CALLER: caller}
    # One manager per request: it needs no ASGI lifespan events.
    manager = StreamableHTTPSessionManager(_server, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, _with_headers(send, headers))


def _caller_of(context: Context) -> Caller:
    request = cast(Request, context.request)
    return cast(Caller, request.scope[_CALLER])


_server = server_for(_caller_of)


def check_host(request: ASGIRequest) -> None:
    """Refuse foreign hosts (DNS rebinding).

    Raises:
        Problem: 400, the host is not allowed.
    """
    try:
        request.get_host()
    except DisallowedHost:
        said = "This host is not allowed; add it to LOCI_ALLOWED_HOSTS."
        raise Problem(400, "bad_host", said) from None


def check_https(request: ASGIRequest) -> None:
    """Lead what came by HTTP to HTTPS. Django's middleware does so for its own views only.

    Raises:
        Problem: 308, by which a client sends the same again.
    """
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        where = f"https://{request.get_host()}{request.get_full_path()}"
        raise Problem(308, "https_only", HTTPS_ONLY, headers={"Location": where})


def check_origin(request: ASGIRequest) -> None:
    """Refuse foreign origins (cross-site scripts).

    Raises:
        Problem: 403, the origin is not allowed.
    """
    origin = request.headers.get("Origin")
    if origin is not None and not _is_ours(origin):
        said = "This origin is not allowed; add its host to LOCI_ALLOWED_HOSTS."
        raise Problem(403, "bad_origin", said)


def _is_ours(origin: str) -> bool:
    if origin in settings.CSRF_TRUSTED_ORIGINS or origin in settings.CORS_ORIGINS:
        return True
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    host = f"[{host}]" if ":" in host else host
    return validate_host(host, settings.ALLOWED_HOSTS)


def _check_method(request: ASGIRequest) -> None:
    if request.method != "POST":
        said = "Send POST: requests are stateless, so there is no stream to open."
        raise Problem(405, "method_not_allowed", said, headers={"Allow": "POST"})


def _authenticate(header: str, known: Addresses | None, cost: int) -> tuple[Caller, Rate | None]:
    try:
        token = bearer_in(header)
        key = _key_of(token, known) if token.startswith(ACCESS_PREFIX) else key_in(header)
    except Problem as problem:
        _challenge(problem, known)
        raise
    rate = throttling.count_request(key, cost)
    check_rate(rate)
    return Caller(key), rate


def _key_of(token: str, known: Addresses | None) -> ApiKey:
    """
    Raises:
        Problem: 401, the access token opens nothing here.
    """
    key = key_of_access_token(token, known.resource) if known is not None else None
    if key is None:
        raise Problem(401, "bad_token", BAD_TOKEN, headers={"WWW-Authenticate": CHALLENGE})
    return key


def _challenge(error: Problem, known: Addresses | None) -> None:
    """Name the metadata, by which apps find out how to connect (RFC 9728)."""
    if error.status_code != 401 or known is None:
        return
    parts = [CHALLENGE, f'resource_metadata="{known.resource_metadata}"']
    parts.append(f'scope="{" ".join(SCOPES)}"')
    if error.code != "not_authenticated":
        parts.append('error="invalid_token"')
    error.headers["WWW-Authenticate"] = ", ".join(parts)


async def refuse(send: Send, error: Exception) -> None:
    response = as_json(problem_of(error) or Problem(500, "broken", str(error)))
    for name, value in (*_ALWAYS.items(), ("Content-Length", str(len(response.content)))):
        response.headers[name] = value
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in response.items()
    ]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


def _with_headers(send: Send, headers: dict[str, str]) -> Send:
    more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sent
