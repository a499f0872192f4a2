"""URLs of the proxy, below /v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from api.openai import views

app_name = "proxy"
urlpatterns: list[URLPattern] = [
    path("chat/completions", views.chat_completions, name="chat_completions"),
    path("models", views.models, name="models"),
    path("models/<path:name>", views.model, name="model"),
]
