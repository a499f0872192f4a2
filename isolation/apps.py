"""Update the row-level security policies after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.signals import post_migrate

from isolation.policies import protect

# The migration that first made policies.
FIRST = ("palace", "0026_row_security")


class IsolationConfig(AppConfig):
    name = "isolation"

    def ready(self) -> None:
        # Django sends the signal only for applications with models; this one has none.
        sender = apps.get_app_config(FIRST[0])
        post_migrate.connect(_protect_new_tables, sender=sender, dispatch_uid="isolation")


def _protect_new_tables(using: str, **_: Any) -> None:
    connection = connections[using]
    # After a migration back to a version without policies, none are made.
    if FIRST in MigrationRecorder(connection).applied_migrations():
        protect(connection)
