"""URLs of the REST API and the proxy; MCP is an ASGI app of its own."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("api.rest.urls")),
    path("v1/", include("api.openai.urls")),
]
