"""MCP over streamable HTTP at /mcp: check key, host, origin and rate, then run the server.

Requests are stateless, so any web process can answer any of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import InterfaceError, OperationalError
from django.http.request import validate_host
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request

from api.mcp.callers import Caller
from api.mcp.server import Context, in_thread, server_for
from api.rest.access import check_rate, key_in
from api.rest.problems import Problem, as_json, problem_of
from settings_app import throttling
from settings_app.throttling import Rate

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATHS = ("/mcp", "/mcp/")
_CALLER = "loci.caller"
_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def with_mcp(application: Application) -> Application:
    """Wrap the application so that /mcp is served by the MCP server."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in PATHS:
            await answer(scope, receive, send)
        else:
            await application(scope, receive, send)

    return routed


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        request = ASGIRequest(dict(scope), BytesIO())
        _check_address(request)
        _check_method(request)
        header = request.headers.get("Authorization", "")
        cost = throttling.cost_of_body(request)
        caller, rate = await in_thread(lambda: _authenticate(header, cost))
    except (Problem, OperationalError, InterfaceError) as error:
        await _refuse(send, error)
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


def _check_address(request: ASGIRequest) -> None:
    """Refuse foreign hosts and origins (DNS rebinding, cross-site scripts).

    Raises:
        Problem: 400 or 403, the host or the origin is not allowed.
    """
    try:
        request.get_host()
    except DisallowedHost:
        said = "This host is not allowed; add it to LOCI_ALLOWED_HOSTS."
        raise Problem(400, "bad_host", said) from None
    origin = request.headers.get("Origin")
    if origin is not None and not _is_ours(origin):
        said = "This origin is not allowed; add its host to LOCI_ALLOWED_HOSTS."
        raise Problem(403, "bad_origin", said)


def _is_ours(origin: str) -> bool:
    if origin in settings.CSRF_TRUSTED_ORIGINS:
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


def _authenticate(header: str, cost: int) -> tuple[Caller, Rate | None]:
    key = key_in(header)
    rate = throttling.count_request(key, cost)
    check_rate(rate)
    return Caller(key), rate


async def _refuse(send: Send, error: Exception) -> None:
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
