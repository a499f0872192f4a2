"""Addresses of programs: one means the same with the slash at its end or without.

Django would send whoever left it out elsewhere, and clients follow that with a GET: what was posted
would be lost. People's browsers are still sent to the one address that a page has.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.urls import is_valid_path

# Below these there is nothing for people, but for what they ask for as pages.
_PREFIXES = ("/v1/", "/api/")


def is_programs(request: HttpRequest) -> bool:
    """Whether a program asks, which wants JSON also where something went wrong."""
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
