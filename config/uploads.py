"""How much a request may bring along: a server without a limit has its disk filled by anyone."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from palace.importers.uploads import BESIDES_THE_FILE, largest_request

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# Of an upload there are two copies at once, as it came and taken out of its form, and a third as
# it is prepared for filing.
COPIES = 3


def limited(application: Application) -> Application:
    """Let too much arrive, but keep only its beginning.

    A server that hangs up amid an upload is shown by browsers as a broken connection. So the page
    is asked all the same: it sees by the length that was declared, or by what is missing at the
    end of the form, that it has not got everything, and can say so.
    """

    async def limited_application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            receive = _shortened(receive, _room_for(_declared_length(scope)))
        await application(scope, receive, send)

    return limited_application


def _shortened(receive: Receive, length: int) -> Receive:
    left = length

    async def receive_shortened() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] != "http.request" or not message.get("body"):
            return message
        body = message["body"][:left]
        left -= len(body)
        return {**message, "body": body}

    return receive_shortened


def _room_for(declared: int | None) -> int:
    """How much of a request that declares this length is kept; both in bytes."""
    if declared is not None and declared <= BESIDES_THE_FILE:
        return declared  # What is small is not worth a look at the disk.
    free = shutil.disk_usage(tempfile.gettempdir()).free
    most = min(largest_request(), free // COPIES)
    return most if (declared or 0) <= most else BESIDES_THE_FILE


def _declared_length(scope: Scope) -> int | None:
    values = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(values[0]) if values and values[0].isdigit() else None
