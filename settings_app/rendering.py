"""Render a page, or only the part of it that htmx asks for."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from settings_app.access import PageRequest


def render_page_or_part(
    request: PageRequest, template: str, part: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """`template`, or its partial `part` for htmx; a restored history entry is the whole page."""
    wants_part = request.htmx and not request.htmx.history_restore_request
    name = f"{template}#{part}" if wants_part else template
    response = render(request, name, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response
