"""The memory palace."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class PalaceConfig(AppConfig):
    name = "palace"

    def ready(self) -> None:
        import_module("palace.checks")  # It registers itself; models must be there first.
        import_module("palace.working.forgetting").forget_with_palaces()
