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


def undo_last_migration() -> None:
    """Give the tables of the palace as the version before had them, most likely."""
    with row_access.maintenance():
        executor = _one_by_one()
        [last] = _last_of(executor, "palace")
        parents = executor.loader.graph.node_map[last].parents
        executor.migrate([each.key for each in parents if each.key[0] == "palace"])


def migrate_one_by_one() -> None:
    """Make all tables as an installation of the first version got them."""
    with row_access.maintenance():
        executor = _one_by_one()
        executor.migrate(_last_of(executor))


def _last_of(executor: MigrationExecutor, app: str | None = None) -> list[tuple[str, str]]:
    """The last migration of the app, or of each; a squashed one is in the graph too."""
    loader = executor.loader
    leaves = loader.graph.leaf_nodes(app)
    return [key for key in leaves if not loader.disk_migrations[key].replaces]


def _one_by_one() -> MigrationExecutor:
    executor = MigrationExecutor(connection)
    executor.loader.replace_migrations = False
    executor.loader.build_graph()
    return executor
