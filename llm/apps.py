"""Everything that talks to a model; it knows nothing of palaces."""

from __future__ import annotations

from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "llm"

    def ready(self) -> None:
        # Registers the system checks; it needs the models, which are not there before.
        from llm import checks  # noqa: F401, PLC0415
