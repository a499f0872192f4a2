"""WhiteNoise for an ASGI server."""

from __future__ import annotations

import contextlib
import io

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise brings no types.
    """Sends files unstreamed: sync streaming under ASGI makes Django warn and buffer."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        with found.file or contextlib.nullcontext(io.BytesIO()) as file:
            content = file.read()
        return HttpResponse(content, status=int(found.status), headers=dict(found.headers))
