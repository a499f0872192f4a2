"""The APIs for programs: REST, MCP and the OpenAI proxy."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "api"

    def ready(self) -> None:
        import_module("api.rest.paths").register()
