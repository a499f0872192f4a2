"""The memory palace."""

from __future__ import annotations

from django.apps import AppConfig


class PalaceConfig(AppConfig):
    name = "palace"
