"""System checks of a deployment, run by `migrate` and `check --database default`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from palace.errors import EmbeddingMismatch
from palace.storage.indexing.spaces import verify


@register(Tags.database)
def check_embedding_model(
    databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """Check that the settings name the model that the palaces are embedded with."""
    if not databases or _is_behind():
        return []
    try:
        verify()
    except EmbeddingMismatch as error:
        return [Error(str(error), id="palace.E001")]
    return []


def _is_behind() -> bool:
    """Whether migrations are pending, so that tables may be missing."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
