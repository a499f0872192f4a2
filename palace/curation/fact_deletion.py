"""Deleting facts together with the words they rest on, and bringing both back."""

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

# Where programs give words to be remembered as facts: the fact API with the SDK, and MCP.
FACT_API = "sdk"
FACT_DOORS = (FACT_API, "mcp")
# Of more drawers that stay, the rest is counted.
MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Kept:
    """A drawer that stays although a fact that rested on it was deleted.

    Attributes:
        memories: The active memories that rest on it; none where it stays because it came by
            another door, such as a chat or an import.
    """

    drawer: Drawer
    memories: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted.

    Attributes:
        facts: How many were active until now.
        trashed: How many drawers went to the trash with them.
        kept: The drawers that stay, up to `MOST_LISTED` of them.
        kept_total: How many drawers stay.
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
    """Delete a fact, and move the drawers that it alone rests on to the trash.

    Args:
        check: As of `editing.rewrite`.
        doors: The sources whose drawers may go; None: all of them.

    Raises:
        NoSuchFact: as `editing.current`.
    """
    with transaction.atomic():
        palace.lock()
        at = new_moment(palace)
        fact = fact_edits.current(palace, memory)
        fact_edits.delete(palace, memory, scope, check=check, at=at)
        words = resting_under(palace, [memory])
        return _put_away(palace, words, [fact], at, words if doors is None else _from(words, doors))


def delete_facts(
    palace: Palace, facts: FactQuerySet, scope: Scope, more: DrawerQuerySet
) -> Forgotten:
    """`delete_fact` for all of the facts that are active.

    Args:
        more: Drawers that go too, unless an active fact rests on them.
    """
    with transaction.atomic():
        palace.lock()
        at = new_moment(palace)
        deleted = list(facts.within(palace).active().order_by("pk"))
        fact_edits.delete_all(palace, facts, scope, at=at)
        words = resting_under(palace, [fact.memory for fact in deleted])
        going = _from(words, FACT_DOORS) | more.within(palace)
        return _put_away(palace, words, deleted, at, going)


def restore_fact(palace: Palace, fact: Fact, scope: Scope) -> tuple[Fact, Restored]:
    """`editing.restore`, with the drawers that went to the trash when it was deleted.

    Raises:
        FactConflict: something else is active in its place.
    """
    with transaction.atomic():
        palace.lock()
        went = Drawer.objects.none()
        if fact.fate == Fact.Fate.DELETED and fact.retired_at:
            words = resting_under(palace, [fact.memory])
            went = batch_of(palace, fact.retired_at).filter(pk__in=words.values("pk"))
        restored = restore_drawers(palace, went)
        active = fact_edits.hold_in_order(palace, fact, scope, why=fact_edits.RESTORED)
    fill_missing(palace, active_space(), [active])
    return active, restored


def purge_words(palace: Palace) -> int:
    """Delete everything that the fact API was told, for good; returns how many drawers."""
    drawers = Drawer.objects.filter(palace=palace, source=FACT_API)
    trash_drawers(palace, drawers)
    purge = Purge(palace)
    purge.run(drawers)
    return purge.count


def resting_under(palace: Palace, memories: Collection[UUID]) -> DrawerQuerySet:
    """The drawers that any version of these memories rests on."""
    versions = Fact.objects.within(palace).filter(memory__in=list(memories))
    words = Evidence.objects.filter(palace=palace, fact__in=versions.values("pk"))
    return Drawer.objects.within(palace).filter(pk__in=words.values("drawer"))


def resting_only_under(palace: Palace, memory: UUID) -> DrawerQuerySet:
    """The drawers that no active fact rests on but versions of this memory."""
    return _free(palace, resting_under(palace, [memory]), but=memory)


def _free(palace: Palace, drawers: DrawerQuerySet, but: UUID | None = None) -> DrawerQuerySet:
    """Those of the drawers that are not in the trash, and that no active fact rests on."""
    active = Fact.objects.within(palace).active()
    if but is not None:
        active = active.exclude(memory=but)
    words = Evidence.objects.filter(
        palace=palace, drawer=OuterRef("pk"), fact__in=active.values("pk")
    )
    return drawers.kept().exclude(Exists(words))


def _from(drawers: DrawerQuerySet, doors: Collection[str]) -> DrawerQuerySet:
    return drawers.filter(source__in=doors)


def _put_away(
    palace: Palace,
    words: DrawerQuerySet,
    deleted: Sequence[Fact],
    at: datetime,
    going: DrawerQuerySet,
) -> Forgotten:
    """Move those of `going` to the trash that are free; tell which of `words` stay."""
    # What is free is decided once: the trash must not drop facts on its own account.
    keys = list(_free(palace, going).order_by().values_list("pk", flat=True))
    batch = trash_drawers(palace, Drawer.objects.filter(pk__in=keys), at=at, deleted=deleted)
    staying = words.kept()
    listed = list(staying.with_place().order_by("said_at", "pk")[:MOST_LISTED])
    memories = _memories_on(palace, listed)
    kept = tuple(Kept(drawer, memories.get(drawer.pk, ())) for drawer in listed)
    total = len(kept) if len(kept) < MOST_LISTED else staying.count()
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
