"""The tables of an earlier version, by undoing migrations one by one."""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from isolation import row_access

BEFORE_STATEMENTS = "0022_asks_or_quotes_only"


def migrate_back(name: str = BEFORE_STATEMENTS) -> None:
    """Undo the palace's migrations after this one, though one squashed migration replaces them."""
    with row_access.maintenance():
        _one_by_one().migrate([("palace", name)])


def migrate_one_by_one() -> None:
    """Make all tables as an installation of the first version got them."""
    with row_access.maintenance():
        executor = _one_by_one()
        loader = executor.loader
        last = loader.graph.leaf_nodes()
        executor.migrate([key for key in last if not loader.disk_migrations[key].replaces])


def _one_by_one() -> MigrationExecutor:
    executor = MigrationExecutor(connection)
    executor.loader.replace_migrations = False
    executor.loader.build_graph()
    return executor
