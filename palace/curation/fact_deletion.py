"""Deletion and restoration of facts together with their source drawers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from palace.curation.purge import Purge
from palace.curation.trash import (
    Restored,
    batch_of,
    new_moment,
    restore_drawers,
    trash_drawers,
)
from palace.knowledge.facts import fact_edits
from palace.knowledge.facts.scope import Scope
from palace.models import Drawer, Evidence, Fact, Palace
from palace.models.facts import FactQuerySet
from palace.models.hierarchy import DrawerQuerySet
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space

# Sources of messages sent by programs to extract facts: the fact API with the SDK, and MCP.
FACT_API = "sdk"
FACT_DOORS = (FACT_API, "mcp")
# Further remaining drawers are only counted.
MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Kept:
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
    kept: tuple[Kept, ...] = ()
    kept_total: int = 0


def delete_fact(
    palace: Palace,
    memory: UUID,
    scope: Scope,
    *,
    check: Callable[[Fact], None] = fact_edits.as_it_may_be,
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
        active = fact_edits.hold_in_order(palace, fact, scope, why=fact_edits.RESTORED)
    fill_missing(palace, active_space(), [active])
    return active, restored


def purge_words(palace: Palace) -> int:
    """Purge all drawers of the fact API; returns how many."""
    drawers = Drawer.objects.filter(palace=palace, source=FACT_API)
    trash_drawers(palace, drawers)
    purge = Purge(palace)
    purge.run(drawers)
    return purge.count


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
    """Move those of `going` to the trash that are free; tell which of `words` stay."""
    # Evaluate once, so that trashing cannot deactivate further facts.
    keys = list(_free(palace, to_trash).order_by().values_list("pk", flat=True))
    batch = trash_drawers(palace, Drawer.objects.filter(pk__in=keys), at=at, deleted=deleted)
    remaining = words.kept()
    listed = list(remaining.with_place().order_by("said_at", "pk")[:MOST_LISTED])
    memories = _memories_on(palace, listed)
    kept = tuple(Kept(drawer, memories.get(drawer.pk, ())) for drawer in listed)
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
