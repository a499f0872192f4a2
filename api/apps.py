"""The APIs for programs: REST, MCP and the OpenAI proxy."""

from __future__ import annotations

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "api"
