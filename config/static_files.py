"""Static files: compressed, with a hash in the URL, and cached by browsers for a year."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

VERSION = "v"
A_YEAR = "max-age=31536000, public, immutable"
_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
# Fonts and pictures are compressed already.
TEXT = ("text/", "application/javascript", "application/json", "image/svg+xml")


class VersionedStorage(StaticFilesStorage):
    """URLs such as `/static/css/base.css?v=0c2f…`, which change with the file's content."""

    def url(self, name: str | None) -> str:
        address = super().url(name)
        version = _version_of(name or "")
        return f"{address}?{VERSION}={version}" if version else address


@lru_cache(maxsize=1000)
def _version_of(name: str) -> str:
    """Empty without such a file."""
    path = finders.find(name)
    return _hash(Path(path).read_bytes()) if path else ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise brings no types.
    """Sends files unstreamed: sync streaming under ASGI makes Django warn and buffer."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, _asked(request))
        with found.file or contextlib.nullcontext(io.BytesIO()) as file:
            content = file.read()
        response = HttpResponse(content, status=int(found.status), headers=dict(found.headers))
        patch_vary_headers(response, ["Accept-Encoding"])
        if request.method == "GET" and response.status_code == 200:
            # Its size was looked up when the server started; an update may have come since.
            response["Content-Length"] = str(len(content))
            # A file that has changed since its address was written is asked for again soon.
            if request.GET.get(VERSION) == _hash(content):
                response["Cache-Control"] = A_YEAR
            if response["Content-Type"].startswith(TEXT):
                _compress(request, response)
        return response


def _asked(request: HttpRequest) -> dict[str, Any]:
    """The request's headers, with the file's ETag in place of the compressed response's."""
    tag = request.META.get("HTTP_IF_NONE_MATCH", "").removeprefix("W/")
    return {**request.META, **({"HTTP_IF_NONE_MATCH": tag} if tag else {})}


def _compress(request: HttpRequest, response: HttpResponse) -> None:
    if _TAKES_GZIP.search(request.headers.get("Accept-Encoding", "")):
        response.content = _compressed(response.content)
        response["Content-Encoding"] = "gzip"
        response["Content-Length"] = str(len(response.content))
        if "ETag" in response:
            response["ETag"] = f"W/{response['ETag']}"


@lru_cache(maxsize=200)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
