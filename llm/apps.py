"""Calls to chat models, embedders and rerankers; independent of palaces."""

from __future__ import annotations

from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "llm"

    def ready(self) -> None:
        # Registers the system checks; imported here because they need the models.
        from llm import checks  # noqa: F401, PLC0415
