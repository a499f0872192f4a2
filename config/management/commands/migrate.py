"""`migrate`, as the account that owns the tables."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate

from isolation import row_access


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> Any:
        with row_access.maintenance():
            return super().execute(*args, **options)
