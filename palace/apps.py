"""The memory palace."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class PalaceConfig(AppConfig):
    name = "palace"

    def ready(self) -> None:
        import_module("palace.storage.indexing.spaces")  # Registers checks; needs loaded models.
        import_module("palace.working.redis_keys").forget_with_palaces()
        pre_delete.connect(_forget_traces, self.get_model("Palace"), dispatch_uid="traces")


def _forget_traces(instance: Any, **_: Any) -> None:
    # Imported on use: they import much of the palace, and few processes delete a palace.
    for name in ("palace.curation.deletion", "palace.transfer.spools"):
        import_module(name).forget_traces(instance)
