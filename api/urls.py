"""URLs of the REST API, mem0's client and the proxy; MCP is an ASGI app of its own."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from api.openai import views

_PROXY: list[URLPattern] = [
    path("chat/completions", views.chat_completions, name="chat_completions"),
    path("models", views.models, name="models"),
    path("models/<path:name>", views.model, name="model"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("api.rest.urls")),
    path("", include("api.mem0.urls")),
    path("v1/", include((_PROXY, "proxy"))),
]
