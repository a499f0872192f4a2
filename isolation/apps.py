"""The rules of the database, renewed after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.signals import post_migrate

from isolation.policies import protect

# The migration that made rules for the tables there were.
FIRST = ("palace", "0026_row_security")


class IsolationConfig(AppConfig):
    name = "isolation"

    def ready(self) -> None:
        # Django sends this for applications with models only, which this is not.
        sender = apps.get_app_config(FIRST[0])
        post_migrate.connect(_protect_new_tables, sender=sender, dispatch_uid="isolation")


def _protect_new_tables(using: str, **_: Any) -> None:
    connection = connections[using]
    # Who goes back to a version that knows no rules finds none.
    if FIRST in MigrationRecorder(connection).applied_migrations():
        protect(connection)
