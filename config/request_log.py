"""Log and measure every request, and give it an id."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings

from api.mcp.http import PATHS as MCP_PATHS
from api.oauth.http import PATHS as OAUTH_PATHS
from config import metrics
from config.middleware import Application, match_of
from settings_app import request_id

logger = logging.getLogger(__name__)

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
