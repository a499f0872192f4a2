"""Middleware: API URLs with and without a trailing slash, and static files under ASGI."""

from __future__ import annotations

import contextlib
import io

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.urls import is_valid_path
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

# Only programs use paths below these, except for the pages among them.
_PREFIXES = ("/v1/", "/api/")


def is_programs(request: HttpRequest) -> bool:
    """Whether a program sent the request, which expects errors as JSON."""
    accepted = request.headers.get("Accept", "")
    return (
        request.path_info.startswith(_PREFIXES)
        or request.headers.get("Authorization", "").lower().startswith("bearer ")
        or ("json" in accepted and "html" not in accepted)
        or request.content_type == "application/json"
    )


class Addresses(CommonMiddleware):
    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:  # type: ignore[override]
        if is_programs(request) and not is_valid_path(request.path_info):
            _spell_otherwise(request)
        return super().process_request(request)


def _spell_otherwise(request: HttpRequest) -> None:
    path = request.path_info
    other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
    if is_valid_path(other):
        before = request.path.removesuffix(path)
        request.path_info, request.path = other, f"{before}{other}"


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise brings no types.
    """Sends files unstreamed: sync streaming under ASGI makes Django warn and buffer."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        with found.file or contextlib.nullcontext(io.BytesIO()) as file:
            content = file.read()
        return HttpResponse(content, status=int(found.status), headers=dict(found.headers))
