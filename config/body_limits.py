"""Limit request bodies by API before anything is stored, and the stored part of an upload, so that
neither fills the disk.

Django spools a whole body to disk before it checks the sender.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO

from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from django.template import loader

from api.mcp.http import PATHS as MCP_PATHS
from api.mcp.http import Application, Message, Receive, Scope, Send
from api.mcp.server import in_thread
from api.openai import chat_request
from api.openai.access import as_json_at, as_openai
from api.rest import parsing
from api.rest.access import key_in
from api.rest.problems import Problem, as_json, problem_of
from config.middleware import is_api_request, match_of
from language.errors import PalaceError, StorageFull
from llm.database_writes import is_disk_full
from palace.transfer.spools import BESIDES_THE_FILE, largest_request
from settings_app.pages import POLICY
from settings_app.sessions import SessionStore

UPLOADS = "imports"
# What a program may send without a known key; as many as send more would fill the disk together.
MOST_OF_STRANGERS = 1 << 20
_SCHEMES = ("bearer", "token")
# Seconds for which a refused body is still read and discarded: many clients read the response
# only after sending everything.
LINGER_S = 10
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Connection": "close"}

# An upload has two copies at once, the raw body and the extracted file, and a third when
# it is prepared for filing.
COPIES = 3


@dataclass(frozen=True, slots=True)
class Door:
    """An entry point and its limits.

    Attributes:
        most_bytes: The largest body.
        sentence: The error for a larger one.
        answer: Builds the error in this API's format; None if it depends on the client.
        on_page: The error page's text, if not the default.
        needs_key: Whether a larger body than a stranger's must come with a known key.
    """

    most_bytes: int
    sentence: str
    answer: Callable[[Problem], HttpResponse] | None = None
    on_page: str = ""
    needs_key: bool = False


def _of_programs(most_bytes: int, answer: Callable[[Problem], HttpResponse]) -> Door:
    said = f"The body has up to {most_bytes >> 20} MB. Send less at once."
    return Door(most_bytes, said, answer, needs_key=True)


_SIGN_IN = "Sign in first, then send the file again. Nothing of it was kept."
# By URL name or namespace.
_DOORS = {
    "api": _of_programs(parsing.MOST_BYTES, as_json),
    "proxy": _of_programs(chat_request.MOST_BYTES, as_openai),
    # For anonymous requests.
    UPLOADS: Door(BESIDES_THE_FILE, _SIGN_IN, on_page=_SIGN_IN),
}


def limited(application: Application) -> Application:
    async def limited_application(scope: Scope, receive: Receive, send: Send) -> None:
        declared = _declared_length(scope)
        if scope["type"] != "http" or (declared is not None and declared <= BESIDES_THE_FILE):
            await application(scope, receive, send)
            return
        limit = _Limit(_door_of(scope), scope, receive, send)
        try:
            if await limit.is_lifted():
                await application(scope, shortened(receive, declared), limit.send)
            elif await limit.lets_in(declared):
                await application(scope, limit.receive, limit.send)
        except OSError as error:
            # Django writes large bodies to disk.
            if not is_disk_full(error) or not await limit.refuses(StorageFull()):
                raise
        finally:
            await limit.finish()

    return limited_application


def _door_of(scope: Scope) -> Door:
    path = scope["path"]
    if path in MCP_PATHS:  # It looks at keys and apps' tokens by itself before it reads a body.
        return replace(_DOORS["api"], needs_key=False)
    found = match_of(path)
    names = [found.url_name or "", *reversed(found.namespaces)] if found else []
    return next((_DOORS[name] for name in names if name in _DOORS), None) or _pages()


def _pages() -> Door:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or parsing.MOST_BYTES
    return Door(most, "The request is too large. Send less at once.")


def _declared_length(scope: Scope) -> int | None:
    """0 without a body; None if the length is unknown in advance."""
    headers = dict(scope.get("headers", ()))
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else None


class _Limit:
    """Counts received bytes, and responds in the application's place once there are too many."""

    def __init__(self, door: Door, scope: Scope, receive: Receive, send: Send) -> None:
        self._door, self._scope = door, scope
        self._left = door.most_bytes
        self._too_large = Problem(413, "too_large", door.sentence)
        self._refused = self._is_answered = False
        self._receive, self._send = receive, send

    async def is_lifted(self) -> bool:
        """Whether it is an upload by a signed-in user."""
        if self._door is not _DOORS[UPLOADS]:
            return False
        try:
            return await in_thread(lambda: is_signed_in(self._scope))
        except (OperationalError, InterfaceError) as error:
            await self._refuse(_away(error))
            return False

    async def lets_in(self, declared: int | None) -> bool:
        if not self._refused and declared is not None and declared > self._door.most_bytes:
            await self._refuse(self._too_large)
        elif not self._refused and self._door.needs_key:
            await self._stop_strangers(declared)
        return not self._refused

    async def _stop_strangers(self, declared: int | None) -> None:
        if declared is not None and declared <= MOST_OF_STRANGERS:
            return
        stranger = await in_thread(lambda: _stranger(self._scope))
        if stranger is not None and declared is not None:
            await self._refuse(stranger)
        elif stranger is not None:
            self._left, self._too_large = MOST_OF_STRANGERS, stranger

    async def refuses(self, error: PalaceError) -> bool:
        """Answer with this error; False if an answer has begun already."""
        problem = problem_of(error)
        if problem is None or self._is_answered or self._refused:
            return False
        await self._refuse(problem)
        return True

    async def receive(self) -> Message:
        """Make a refused request look like a disconnect to the application."""
        if self._refused:
            return {"type": "http.disconnect"}
        message: Message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            if not self._is_answered:
                await self._refuse(self._too_large)
            return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        if not self._refused:
            self._is_answered = True
            await self._send(message)

    async def finish(self) -> None:
        """After a refusal, discard further data for a while, then disconnect."""
        if not self._refused:
            return
        expects = dict(self._scope["headers"]).get(b"expect", b"")
        if expects.lower() != b"100-continue":  # That client has sent nothing yet.
            await _thrown_away(self._receive)
        await self._send({"type": "http.response.body", "body": b""})

    async def _refuse(self, problem: Problem) -> None:
        self._refused = True
        response = _response(self._scope, self._door, problem)
        named = {**response.headers, **_HEADERS, "Content-Length": str(len(response.content))}
        headers = [
            (name.lower().encode(), value.encode("latin-1")) for name, value in named.items()
        ]
        start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        await self._send(start)
        body = {"type": "http.response.body", "body": response.content, "more_body": True}
        await self._send(body)


async def _thrown_away(receive: Receive) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while (await receive()).get("more_body"):
                pass


def _response(scope: Scope, door: Door, problem: Problem) -> HttpResponse:
    if door.answer is not None:
        return door.answer(problem)
    request = ASGIRequest(dict(scope), BytesIO())
    if is_api_request(request):
        return as_json_at(request.path_info, problem)
    is_large = problem.status_code == 413
    page = loader.get_template("413.html" if is_large else "503.html")
    words = page.render({"sentence": door.on_page if is_large else str(problem.detail)})
    headers = {**problem.headers, "Content-Security-Policy": POLICY}
    return HttpResponse(words, status=problem.status_code, headers=headers)


def _stranger(scope: Scope) -> Problem | None:
    """What to answer a request without a known key."""
    header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    try:
        key_in(header, _SCHEMES)
    except Problem as problem:
        return problem
    except (OperationalError, InterfaceError) as error:
        return _away(error)
    return None


def _away(error: Exception) -> Problem:
    return problem_of(error) or Problem(503, "database_unavailable", str(error))


def is_signed_in(scope: Scope) -> bool:
    """Whether the request has an active user's session."""
    request = ASGIRequest(dict(scope), BytesIO())
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return get_user(request).is_authenticated


def shortened(receive: Receive, declared: int | None) -> Receive:
    """Accept an oversized upload, but store only its beginning.

    Browsers show an aborted upload as a connection error. So the view
    runs all the same: it detects by the declared length, or the missing
    end of the form, that the upload is incomplete, and can say so.
    """
    left = _room_for(declared)

    async def receive_shortened() -> Message:
        nonlocal left
        message: Message = await receive()
        if message["type"] != "http.request" or not message.get("body"):
            return message
        body = message["body"][:left]
        left -= len(body)
        return {**message, "body": body}

    return receive_shortened


def _room_for(declared: int | None) -> int:
    """The stored size of a request of this declared length, in bytes."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    most = min(largest_request(), free // COPIES)
    return most if (declared or 0) <= most else BESIDES_THE_FILE
