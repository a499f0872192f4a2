"""Immediate and permanent deletion of drawers, of a palace, or of an account."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

import redis
from django.contrib.auth.models import User
from django.db import transaction

from llm.embedding import forget
from palace import retry_backoff
from palace.curation.purge import Purge, forget_vectors
from palace.curation.trash import trash_drawers
from palace.knowledge.facts.model_calls import forget_answers
from palace.models import (
    Drawer,
    EmbeddingSpace,
    Episode,
    Fact,
    IdempotentWrite,
    ImportJob,
    Palace,
    Room,
)
from palace.models.hierarchy import DrawerQuerySet
from palace.models.locks import held_if_free
from palace.storage.indexing.spaces import model_of
from palace.storage.indexing.vector_index import index_in_use
from palace.working.errors import WorkingMemoryAway
from settings_app import account_closure
from settings_app.account_closure import Receipt

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

# Drawers or other texts in memory at a time.
BATCH = 1000


def delete_drawers(palace: Palace, drawers: DrawerQuerySet) -> int:
    """Purge drawers, including those in the trash; returns how many."""
    drawers = drawers.within(palace)
    if not drawers.exists():
        return 0
    trash_drawers(palace, drawers)
    purge = Purge(palace)
    purge.run(drawers)
    return purge.count


def delete_palace(palace: Palace) -> None:
    """Delete a palace with everything derived from it, in one transaction."""
    with transaction.atomic():
        # The lock waits for concurrent writers, which then find the palace gone.
        for locked in Palace.objects.select_for_update().filter(pk=palace.pk):
            locked.delete()


def close_account(user: User) -> Receipt:
    """Disable the account; call `delete_account` next."""
    return account_closure.close(user, but=[Palace])


def delete_account(user_id: int) -> bool:
    """Delete a closed account and all its palaces; True if it is gone.

    Each palace is one transaction, so a repeated call continues. Does nothing while another
    process is deleting the account.
    """
    with held_if_free(f"leaving {user_id}") as ours:
        while ours and account_closure.closed().filter(pk=user_id).exists():
            for palace in Palace.objects.filter(owner=user_id).order_by("pk"):
                delete_palace(palace)
            _delete_emptied(user_id)
        return not User.objects.filter(pk=user_id).exists()


def delete_closed_accounts() -> None:
    """Complete interrupted deletions; a failure of one does not affect the others."""
    for user_id in account_closure.closed().order_by("pk").values_list("pk", flat=True):
        try:
            delete_account(user_id)
        except Exception:
            logger.exception("The closed account %s could not be deleted.", user_id)


def _delete_emptied(user_id: int) -> None:
    """Delete the account row, unless a concurrent request has created another palace."""
    with transaction.atomic():
        people = account_closure.closed().select_for_update().filter(pk=user_id)
        if people and not Palace.objects.filter(owner=user_id).exists():
            people.delete()


def forget_traces(palace: Palace) -> None:
    """Delete what the database does not cascade: cached vectors and recent API responses.

    Called before every deletion of a palace, in its transaction.
    """
    bool(Palace.objects.select_for_update().filter(pk=palace.pk).values_list("pk"))
    drawers = Drawer.objects.filter(palace=palace).order_by("pk").only("pk", "text")
    for some in _batches(drawers.iterator(BATCH)):
        forget_vectors(palace, some)
    models = [model_of(space) for space in EmbeddingSpace.objects.order_by("pk")]
    for texts in _batches(_derived_texts(palace)):
        for model in models:
            forget(texts, model)
    index_in_use().retain(palace, [])
    # Stored API responses may contain texts of the palace.
    IdempotentWrite.objects.filter(owner=palace.owner_id).delete()
    transaction.on_commit(partial(_forget_in_redis, palace.owner_id, _waiting(palace)))


def _derived_texts(palace: Palace) -> Iterator[str]:
    """Embedded texts other than drawers: facts, episode summaries, room titles."""
    for model, name in ((Fact, "text"), (Episode, "summary"), (Room, "title")):
        rows = model._base_manager.filter(palace=palace).order_by()
        yield from rows.values_list(name, flat=True).iterator(BATCH)


def _waiting(palace: Palace) -> list[tuple[str, int]]:
    """Work items of the palace that may have a retry backoff."""
    rooms = Drawer.objects.filter(palace=palace).unmined().order_by()
    jobs = ImportJob.objects.filter(palace=palace).order_by()
    return [
        ("facts", palace.pk),
        ("episodes", palace.pk),
        *(("room", key) for key in rooms.values_list("room_id", flat=True).distinct()),
        *(("import", key) for key in jobs.values_list("pk", flat=True)),
    ]


def _forget_in_redis(owner_id: int, waiting: list[tuple[str, int]]) -> None:
    try:
        forget_answers(owner_id)
        for kind, key in waiting:
            retry_backoff.done(kind, key)
    except (WorkingMemoryAway, redis.RedisError) as error:
        logger.warning("Cached model answers remain for an hour: Redis is unavailable (%s).", error)


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch
