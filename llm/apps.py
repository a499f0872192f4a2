"""Everything that talks to a model; it knows nothing of palaces."""

from __future__ import annotations

from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "llm"
