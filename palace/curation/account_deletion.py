"""Leaving: a conversation, a whole palace, or an account, deleted at once and for good."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

import redis
from django.contrib.auth.models import User
from django.db import transaction

from isolation import reach
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

# Drawers, or other texts, that are in memory at once.
BATCH = 1000


def delete_drawers(palace: Palace, drawers: DrawerQuerySet) -> int:
    """Delete drawers at once and for good, those in the trash too; returns how many there were."""
    drawers = drawers.within(palace)
    if not drawers.exists():
        return 0
    trash_drawers(palace, drawers)
    purge = Purge(palace)
    purge.run(drawers)
    return purge.count


def delete_palace(palace: Palace) -> None:
    """Delete all that is remembered about one person, with every trace of their words.

    One transaction: killed in between, nothing is gone, and it can be done again.
    """
    with transaction.atomic():
        # Whoever is just writing there is waited for, and then finds it gone.
        for held in Palace.objects.select_for_update().filter(pk=palace.pk):
            held.delete()


def close_account(user: User) -> Receipt:
    """Nothing opens the account from now on; `delete_account` is to follow."""
    with reach.open_person(user.pk):
        return account_closure.close(user, but=[Palace])


def delete_account(user_id: int) -> bool:
    """Delete a closed account and all its palaces; whether it is gone.

    Each palace is one transaction: killed in between, it goes on with the next. Somebody else may
    be at it right now; then it is left to them.
    """
    with held_if_free(f"leaving {user_id}") as ours, reach.open_person(user_id):
        while ours and account_closure.closed().filter(pk=user_id).exists():
            for palace in Palace.objects.filter(owner=user_id).order_by("pk"):
                delete_palace(palace)
            _delete_emptied(user_id)
        return not User.objects.filter(pk=user_id).exists()


def delete_closed_accounts() -> None:
    """Take up what was left half-done; one where it fails does not keep the others waiting."""
    for user_id in account_closure.closed().order_by("pk").values_list("pk", flat=True):
        try:
            delete_account(user_id)
        except Exception:
            logger.exception("The closed account %s could not be deleted.", user_id)


def _delete_emptied(user_id: int) -> None:
    """The account itself, unless a request that had begun before has made one more palace."""
    with transaction.atomic():
        people = account_closure.closed().select_for_update().filter(pk=user_id)
        if people and not Palace.objects.filter(owner=user_id).exists():
            people.delete()


def forget_traces(palace: Palace) -> None:
    """What the database does not delete with a palace: cached vectors, and answers of late.

    Called before each deletion of a palace, by whatever way, in its transaction.
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
    # What was answered to programs may hold these words.
    IdempotentWrite.objects.filter(owner=palace.owner_id).delete()
    transaction.on_commit(partial(_forget_in_redis, palace.owner_id, _waiting(palace)))


def _derived_texts(palace: Palace) -> Iterator[str]:
    """What was embedded beside what was said: facts, what conversations came to, titles."""
    for model, name in ((Fact, "text"), (Episode, "summary"), (Room, "title")):
        rows = model._base_manager.filter(palace=palace).order_by()
        yield from rows.values_list(name, flat=True).iterator(BATCH)


def _waiting(palace: Palace) -> list[tuple[str, int]]:
    """What of the palace may be noted as waiting to be taken up."""
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
        logger.warning("Answers of models are left for an hour: Redis is away (%s).", error)


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch
