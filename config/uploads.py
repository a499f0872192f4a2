"""Limit the stored size of uploads, so that they cannot fill the disk."""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO

from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest

from config.asgi_types import Message, Receive, Scope
from palace.transfer.import_jobs.spools import BESIDES_THE_FILE, largest_request
from settings_app.sessions import SessionStore

# An upload has two copies at once, the raw body and the extracted file, and a third when
# it is prepared for filing.
COPIES = 3


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
        message = await receive()
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
