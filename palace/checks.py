"""What must hold before a deployment starts: `migrate` and `check --database default` ask it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from isolation import reach
from palace.errors import EmbeddingMismatch
from palace.storage.indexing.spaces import verify


@register(Tags.database)
def check_embedding_model(
    databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """The settings name the model that the palaces are embedded with."""
    if not databases:
        return []
    try:
        with reach.maintenance():
            if not _is_behind():
                verify()
    except EmbeddingMismatch as error:
        return [Error(str(error), id="palace.E001")]
    return []


def _is_behind() -> bool:
    """Tables that are still to be migrated cannot be asked."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
