"""`migrate`, as the account that owns the tables; it may be killed at any moment and run again."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django.core.management.commands import migrate
from django.db import transaction
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState

from isolation import row_access
from llm.checks import TAG


class Executor(MigrationExecutor):
    """Changes tables and records that in one transaction.

    Django records a migration that adds constraints only after its transaction. Killed in between,
    it would make the same tables again at the next start, and fail.
    """

    def apply_migration(
        self, state: ProjectState, migration: Migration, *args: Any, **kwargs: Any
    ) -> ProjectState:
        with transaction.atomic(self.connection.alias):
            return super().apply_migration(state, migration, *args, **kwargs)

    def unapply_migration(
        self, state: ProjectState, migration: Migration, *args: Any, **kwargs: Any
    ) -> ProjectState:
        with transaction.atomic(self.connection.alias):
            return super().unapply_migration(state, migration, *args, **kwargs)


# Django's command takes it from there, and has no other way to be given one.
migrate.MigrationExecutor = Executor  # type: ignore[attr-defined]


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        with row_access.maintenance():
            return super().execute(*args, **options)

    def check(self, *args: Any, **options: Any) -> None:
        """As Loci's other commands, without the checks that import every page for seconds."""
        super().check(*args, **options | {"tags": [TAG, Tags.database, Tags.models]})
