"""The export as a streamed HTTP response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse

from isolation import reach
from palace.models import Palace
from palace.models.opening import reach_of
from palace.transfer.export.to_zip import file_name, stream

MEDIA_TYPE = "application/zip"

# Each uses a database connection for the duration of the download.
_AT_ONCE = asyncio.Semaphore(4)


def download(request: HttpRequest, palace: Palace) -> StreamingHttpResponse:
    """The zip as an attachment. Generation stops when the client disconnects."""
    # Django would collect a sync iterator completely under ASGI.
    is_async = isinstance(request, ASGIRequest)
    # It goes on when the request is over, and its reach with it.
    made = reach.carried(cast(Generator[bytes], stream(palace)), reach_of(palace))
    response = StreamingHttpResponse(_pieces(made) if is_async else made, content_type=MEDIA_TYPE)
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name()}"'
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"  # Some proxies buffer whole responses.
    return response


async def _pieces(made: Generator[bytes]) -> AsyncIterator[bytes]:
    """One thread generates everything: database cursors belong to its connection."""
    async with _AT_ONCE:
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="export")
        loop = asyncio.get_running_loop()
        try:
            while piece := await loop.run_in_executor(thread, next, made, b""):
                yield piece
        finally:
            # Do not wait: the client may have disconnected.
            thread.submit(_put_away, made)
            thread.shutdown(wait=False)


def _put_away(made: Generator[bytes]) -> None:
    made.close()
    connection.close()
