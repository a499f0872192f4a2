"""Permanent deletion of facts, drawers, a palace, or an account."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TypeVar
from uuid import UUID

import redis
from celery import shared_task
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef

from isolation import row_access
from llm import usage
from llm.embedding import forget
from palace.curation.empty_places import delete_unknown
from palace.curation.purge import (
    PURGE_IN_REQUEST_S,
    Purge,
    Removed,
    empty_trash,
    forget_vectors,
    purge_trash,
    remove_sample,
)
from palace.curation.trash import (
    Restored,
    batch_of,
    new_moment,
    restore_drawers,
    trash_drawers,
)
from palace.knowledge.episodes import delete_stored_episodes
from palace.knowledge.facts import Scope, fact_edits, forget_model_answers
from palace.models import (
    Drawer,
    DrawerQuerySet,
    EmbeddingSpace,
    Episode,
    Evidence,
    Fact,
    FactQuerySet,
    ImportJob,
    Palace,
    Room,
    forget_answers,
)
from palace.models.concurrency import held_if_free
from palace.storage.indexing import fact_vectors
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space, model_of
from settings_app import accounts, task_queue
from settings_app.accounts import Receipt

__all__ = [
    "PURGE_IN_REQUEST_S",
    "Forgotten",
    "Purge",
    "Removed",
    "close_account",
    "delete_account",
    "delete_closed_accounts",
    "delete_drawers",
    "delete_fact",
    "delete_facts",
    "delete_palace",
    "delete_session",
    "empty_trash",
    "forget_facts",
    "only_sources_of",
    "purge_trash",
    "remove_sample",
    "restore_fact",
]

# Sources of messages sent by programs to extract facts: the fact API with the SDK, and MCP.
FACT_API = "sdk"
FACT_DOORS = (FACT_API, "mcp")
# Further remaining drawers are only counted.
MOST_LISTED = 100
# The clock looks for closed accounts so often; a task that has waited longer is dropped.
SWEEP_INTERVAL_S = 60
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


def delete_session(palace: Palace, drawers: DrawerQuerySet, conversation: str) -> None:
    """Purge a conversation's drawers; without any left, its stored summaries, too.

    Args:
        drawers: Those of the conversation that came from programs.
        conversation: Its id, as stored.
    """
    delete_drawers(palace, drawers)
    with transaction.atomic():
        palace.lock()
        if delete_stored_episodes(palace, conversation):
            # Stored API responses may contain these texts.
            forget_answers(palace.owner_id)


def delete_palace(palace: Palace) -> None:
    """Delete a palace with everything derived from it, in one transaction."""
    with transaction.atomic():
        # The lock waits for concurrent writers, which then find the palace gone.
        for locked in Palace.objects.select_for_update().filter(pk=palace.pk):
            locked.delete()


def close_account(user: User) -> Receipt:
    """Disable the account; call `delete_account` next."""
    with row_access.open_account(user.pk):
        return accounts.close(user, but=[Palace])


def delete_account(user_id: int) -> bool:
    """Delete a closed account and all its palaces; True if it is gone.

    Each palace is one transaction, so a repeated call continues. Does nothing while another
    process is deleting the account. Without Redis the account's row remains, for the next call:
    the sums of its costs are there.
    """
    with held_if_free(f"leaving {user_id}") as ours, row_access.open_account(user_id):
        while ours and accounts.closed().filter(pk=user_id).exists():
            for palace in Palace.objects.filter(owner=user_id).order_by("pk"):
                delete_palace(palace)
            if not usage.forget_totals(user_id):
                break
            _delete_emptied(user_id)
        return not User.objects.filter(pk=user_id).exists()


@shared_task(
    name="palace.tasks.delete_closed_accounts",
    expires=SWEEP_INTERVAL_S,
    reject_on_worker_lost=False,
)
def delete_closed_accounts() -> None:
    """Complete interrupted deletions; a failure of one does not affect the others."""
    for user_id in accounts.closed().order_by("pk").values_list("pk", flat=True):
        try:
            delete_account(user_id)
        except Exception:
            logger.exception("The closed account %s could not be deleted.", user_id)


def _delete_emptied(user_id: int) -> None:
    """Delete the account row, unless a concurrent request has created another palace."""
    with transaction.atomic():
        people = accounts.closed().select_for_update().filter(pk=user_id)
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
    fact_vectors.delete_all(palace)
    # Stored API responses may contain texts of the palace.
    forget_answers(palace.owner_id)
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
        forget_model_answers(owner_id)
        for kind, key in waiting:
            task_queue.reset_backoff(kind, key)
    except redis.RedisError as error:
        logger.warning("Cached model answers remain for an hour: Redis is unavailable (%s).", error)


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    while batch := list(islice(items, BATCH)):
        yield batch


@dataclass(frozen=True, slots=True)
class KeptSource:
    """A source drawer that remains although its fact was deleted.

    Attributes:
        memories: The active memories with this source; empty if it remains because it came from
            another source, such as chat or an import.
    """

    drawer: Drawer
    memories: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a deletion.

    Attributes:
        facts: Number of active facts deleted.
        trashed: Number of drawers moved to the trash.
        kept: The remaining source drawers, at most `MOST_LISTED`.
        kept_total: Number of remaining source drawers.
    """

    facts: int
    trashed: int
    kept: tuple[KeptSource, ...] = ()
    kept_total: int = 0


def delete_fact(
    palace: Palace,
    memory: UUID,
    scope: Scope,
    *,
    check: fact_edits.Check | None = None,
    doors: Collection[str] | None = FACT_DOORS,
) -> Forgotten:
    """Delete a fact, and move the drawers that are sources of no other fact to the trash.

    Args:
        check: As in `fact_edits.rewrite`.
        doors: The sources whose drawers may be trashed; None: all of them.

    Raises:
        NoSuchFact: as `fact_edits.current`.
    """
    with transaction.atomic():
        palace.lock()
        at = new_moment(palace)
        fact = fact_edits.current(palace, memory)
        fact_edits.delete(palace, memory, scope, check=check, at=at)
        words = sources_of(palace, [memory])
        return _trash_free(
            palace, words, [fact], at, words if doors is None else _from(words, doors)
        )


def delete_facts(
    palace: Palace, facts: FactQuerySet, scope: Scope, more: DrawerQuerySet
) -> Forgotten:
    """`delete_fact` for all active ones of the facts.

    Args:
        more: Further drawers to trash, unless they are sources of an active fact.
    """
    with transaction.atomic():
        palace.lock()
        at = new_moment(palace)
        deleted = list(facts.within(palace).active().order_by("pk"))
        fact_edits.delete_all(palace, facts, scope, at=at)
        words = sources_of(palace, [fact.memory for fact in deleted])
        to_trash = _from(words, FACT_DOORS) | more.within(palace)
        return _trash_free(palace, words, deleted, at, to_trash)


def restore_fact(palace: Palace, fact: Fact, scope: Scope) -> tuple[Fact, Restored]:
    """`fact_edits.restore`, with the drawers that were trashed with the fact.

    Raises:
        FactConflict: something else is active in its place.
    """
    with transaction.atomic():
        palace.lock()
        trashed_with = Drawer.objects.none()
        if fact.fate == Fact.Fate.DELETED and fact.retired_at:
            words = sources_of(palace, [fact.memory])
            trashed_with = batch_of(palace, fact.retired_at).filter(pk__in=words.values("pk"))
        restored = restore_drawers(palace, trashed_with)
        active = fact_edits.reactivate_in_order(palace, fact, scope, why=fact_edits.RESTORED)
    fill_missing(palace, active_space(), [active])
    return active, restored


def forget_facts(palace: Palace) -> None:
    """Purge all facts with their history, the drawers of the fact API, and entities that no other
    drawer mentions.
    """
    with transaction.atomic():
        palace.lock()
        facts = Fact.objects.within(palace)
        named = [*facts.values_list("subject", flat=True)]
        named += facts.exclude(object_entity=None).values_list("object_entity", flat=True)
        fact_edits.forget(palace, facts)
        delete_unknown(palace, named)
    delete_drawers(palace, Drawer.objects.filter(source=FACT_API))


def sources_of(palace: Palace, memories: Collection[UUID]) -> DrawerQuerySet:
    """The source drawers of all versions of these memories."""
    versions = Fact.objects.within(palace).filter(memory__in=list(memories))
    words = Evidence.objects.filter(palace=palace, fact__in=versions.values("pk"))
    return Drawer.objects.within(palace).filter(pk__in=words.values("drawer"))


def only_sources_of(palace: Palace, memory: UUID) -> DrawerQuerySet:
    """The source drawers of this memory that are sources of no other active fact."""
    return _free(palace, sources_of(palace, [memory]), but=memory)


def _free(palace: Palace, drawers: DrawerQuerySet, but: UUID | None = None) -> DrawerQuerySet:
    """The drawers outside the trash that are sources of no active fact."""
    active = Fact.objects.within(palace).active()
    if but is not None:
        active = active.exclude(memory=but)
    words = Evidence.objects.filter(
        palace=palace, drawer=OuterRef("pk"), fact__in=active.values("pk")
    )
    return drawers.kept().exclude(Exists(words))


def _from(drawers: DrawerQuerySet, doors: Collection[str]) -> DrawerQuerySet:
    return drawers.filter(source__in=doors)


def _trash_free(
    palace: Palace,
    words: DrawerQuerySet,
    deleted: Sequence[Fact],
    at: datetime,
    to_trash: DrawerQuerySet,
) -> Forgotten:
    """Move those of `going` to the trash that are free; return which of `words` stay."""
    # Evaluate once, so that trashing cannot deactivate further facts.
    keys = list(_free(palace, to_trash).order_by().values_list("pk", flat=True))
    batch = trash_drawers(palace, Drawer.objects.filter(pk__in=keys), at=at, deleted=deleted)
    remaining = words.kept()
    listed = list(remaining.with_place().order_by("said_at", "pk")[:MOST_LISTED])
    memories = _memories_on(palace, listed)
    kept = tuple(KeptSource(drawer, memories.get(drawer.pk, ())) for drawer in listed)
    total = len(kept) if len(kept) < MOST_LISTED else remaining.count()
    return Forgotten(len(deleted), batch.drawers, kept, total)


def _memories_on(palace: Palace, drawers: Sequence[Drawer]) -> dict[int, tuple[UUID, ...]]:
    """The active memories by the drawers' keys."""
    active = Fact.objects.within(palace).active()
    words = Evidence.objects.filter(
        palace=palace, drawer__in=[drawer.pk for drawer in drawers], fact__in=active.values("pk")
    )
    pairs: Iterable[tuple[int, UUID]] = words.order_by("drawer", "fact").values_list(
        "drawer_id", "fact__memory"
    )
    found: dict[int, dict[UUID, None]] = {}
    for drawer, memory in pairs:
        found.setdefault(drawer, {})[memory] = None
    return {drawer: tuple(memories) for drawer, memories in found.items()}
