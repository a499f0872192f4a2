"""The active embedding space, and the check that the deployment's model matches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from isolation import row_access
from language.errors import EmbeddingMismatch
from llm.embedding import EmbeddingModel, deployment_model
from palace.models import EmbeddingSpace


def active_space() -> EmbeddingSpace:
    """The space that is searched and written to; created from the settings on first use."""
    space = EmbeddingSpace.objects.filter(active=True).first()
    return space or activate(space_for(deployment_model()))


def space_for(model: EmbeddingModel) -> EmbeddingSpace:
    space, _ = EmbeddingSpace.objects.get_or_create(
        provider=model.provider, model=model.name, dimensions=model.dimensions
    )
    return space


def activate(space: EmbeddingSpace) -> EmbeddingSpace:
    """Make this the active space. Safe to run concurrently."""
    with transaction.atomic():
        # Serialises concurrent switches, so that only one space is active.
        list(EmbeddingSpace.objects.select_for_update().order_by("pk"))
        EmbeddingSpace.objects.exclude(pk=space.pk).filter(active=True).update(active=False)
        EmbeddingSpace.objects.filter(pk=space.pk).update(active=True)
    space.refresh_from_db()
    return space


def stays_active(space: EmbeddingSpace) -> bool:
    """Whether this space is active; if so, it stays active until this transaction ends.

    Rows written to an inactive space would never be searched.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT active FROM palace_embeddingspace WHERE id = %s FOR SHARE", [space.pk]
        )
        row: tuple[bool] | None = cursor.fetchone()
    return row == (True,)


def model_of(space: EmbeddingSpace) -> EmbeddingModel:
    return EmbeddingModel(
        provider=space.provider,
        name=space.model,
        dimensions=space.dimensions,
        api_key=settings.EMBEDDING_API_KEY,
    )


def verify() -> None:
    """Check that the settings name the model that the palaces are embedded with.

    Raises:
        EmbeddingMismatch: they differ; the message explains both remedies.
    """
    space, wanted = active_space(), deployment_model()
    if (space.provider, space.model, space.dimensions) != (
        wanted.provider,
        wanted.name,
        wanted.dimensions,
    ):
        raise EmbeddingMismatch(
            f"The palaces are embedded with {space}, but the settings name "
            f"{wanted.provider}/{wanted.name} ({wanted.dimensions}). To switch, run "
            f"`{settings.MANAGE} reembed`: recall uses the old model until it is done. To stay, "
            f"set LOCI_EMBEDDING_PROVIDER={space.provider}, LOCI_EMBEDDING_MODEL={space.model} and "
            f"LOCI_EMBEDDING_DIMENSIONS={space.dimensions}."
        )


def adopt(model: EmbeddingModel) -> None:
    """Use this model in this process, as if the settings named it.

    Raises:
        EmbeddingMismatch: the palaces are embedded with another one.
    """
    space = EmbeddingSpace.objects.filter(active=True).first() or activate(space_for(model))
    if (space.provider, space.model, space.dimensions) != (
        model.provider,
        model.name,
        model.dimensions,
    ):
        raise EmbeddingMismatch(
            f"The palaces are embedded with {space}, not with {model.provider}/{model.name} "
            f"({model.dimensions}); name that embedder, or none. To switch all palaces, set "
            f"LOCI_EMBEDDING_* to the new model and run `{settings.MANAGE} reembed`."
        )
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_MODEL = model.provider, model.name
    settings.EMBEDDING_DIMENSIONS, settings.EMBEDDING_API_KEY = model.dimensions, model.api_key


@register(Tags.database)
def check_embedding_model(
    databases: Sequence[str] | None = None, **options: Any
) -> list[CheckMessage]:
    """Check that the settings name the model that the palaces are embedded with."""
    if not databases:
        return []
    try:
        with row_access.maintenance():
            if not are_migrations_pending():
                verify()
    except EmbeddingMismatch as error:
        return [Error(str(error), id="palace.E001")]
    return []


def are_migrations_pending() -> bool:
    """Whether tables are not yet as this version has them, so that some may be missing."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
