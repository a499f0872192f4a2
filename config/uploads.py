"""How much of an upload is kept: a server without a limit has its disk filled by anyone."""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO

from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest

from config.asgi_types import Message, Receive, Scope
from palace.transfer.importers.uploads import BESIDES_THE_FILE, largest_request
from settings_app.sessions import SessionStore

# Of an upload there are two copies at once, as it came and taken out of its form, and a third as
# it is prepared for filing.
COPIES = 3


def is_signed_in(scope: Scope) -> bool:
    """Whether a request comes from a browser in which an active user is signed in."""
    request = ASGIRequest(dict(scope), BytesIO())
    request.session = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    return get_user(request).is_authenticated


def shortened(receive: Receive, declared: int | None) -> Receive:
    """Let too much arrive, but keep only its beginning.

    A server that hangs up amid an upload is shown by browsers as a broken connection. So the page
    is asked all the same: it sees by the length that was declared, or by what is missing at the
    end of the form, that it has not got everything, and can say so.
    """
    left = _room_for(declared)

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
    free = shutil.disk_usage(tempfile.gettempdir()).free
    most = min(largest_request(), free // COPIES)
    return most if (declared or 0) <= most else BESIDES_THE_FILE
