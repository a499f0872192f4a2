"""The memory palace."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class PalaceConfig(AppConfig):
    name = "palace"

    def ready(self) -> None:
        import_module("palace.checks")  # It registers itself; models must be there first.
        import_module("palace.working.cleanup").forget_with_palaces()
        pre_delete.connect(_forget_traces, self.get_model("Palace"), dispatch_uid="traces")


def _forget_traces(instance: Any, **_: Any) -> None:
    # Looked up when they are needed: much of the palace comes along, and few starts delete one.
    for name in ("palace.curation.account_deletion", "palace.transfer.import_jobs.spools"):
        import_module(name).forget_traces(instance)
