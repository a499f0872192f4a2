"""Trash: drawers are trashed and restored in batches, and purged after KEPT_DAYS."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.utils import timezone

from language.errors import FactConflict
from palace.knowledge.episodes import restore_episodes, trash_episodes
from palace.knowledge.facts import (
    BY_TRASH,
    WORDS_ARE_BACK,
    reopen_ended,
    restore_supported,
    retire_unsupported,
    scopes_of,
)
from palace.knowledge.facts.fact_edits import reactivate_in_order
from palace.models import (
    Activity,
    Closet,
    Drawer,
    DrawerQuerySet,
    Evidence,
    Fact,
    FactQuerySet,
    Palace,
    Room,
    Wing,
)

KEPT_DAYS = 30

Place = Wing | Room | Closet | Drawer

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Drawers trashed together.

    Attributes:
        at: `trashed_at` of all its drawers, unique in the palace.
        drawers: Number of drawers; 0 if all were already in the trash.
        facts: Texts of the facts that lost all evidence, or were deleted with them.
    """

    at: datetime
    drawers: int
    facts: tuple[str, ...] = ()

    @property
    def key(self) -> int:
        """The moment in microseconds since 1970, which identifies the batch in URLs."""
        return batch_key(self.at)


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of restoring.

    Attributes:
        unmined: Keys of the rooms with restored drawers to mine.
    """

    drawers: int
    unmined: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a deletion removes.

    Attributes:
        conversations: Those of which nothing outside the trash stays.
        facts: Active facts without another source.
    """

    conversations: int
    messages: int
    facts: int


def contents_of(palace: Palace, drawers: DrawerQuerySet) -> Contents:
    """What goes when these drawers do; those in the trash do not count."""
    going = drawers.within(palace).kept().order_by()
    elsewhere = (
        Drawer.objects.within(palace)
        .kept()
        .filter(source=OuterRef("source"), conversation=OuterRef("conversation"))
        .exclude(pk__in=going.values("pk"))
    )
    whole = going.exclude(Exists(elsewhere)).values("source", "conversation").distinct()
    facts = Fact.objects.supported_only_by(palace, going)
    return Contents(whole.count(), going.count(), facts.count())


def batch_key(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def moment_of(key: int) -> datetime | None:
    """The moment of a batch's key; None if the key is out of range."""
    try:
        return _EPOCH + key * _MICROSECOND
    except OverflowError:
        return None


def drawers_in(place: Place) -> DrawerQuerySet:
    """All drawers of a place, including those in the trash."""
    drawers = Drawer.objects.filter(palace=place.palace_id)
    if isinstance(place, Wing):
        return drawers.filter(room__palace=place.palace_id, room__wing=place)
    if isinstance(place, Room):
        return drawers.filter(room=place)
    if isinstance(place, Closet):
        return drawers.filter(closet=place)
    return drawers.filter(pk=place.pk)


# Kind and id of drawers, and of closets and rooms with all their drawers.
Chosen = Sequence[tuple[str, UUID]]


def chosen_drawers(palace: Palace, chosen: Chosen) -> DrawerQuerySet:
    in_rooms = Q(room__palace=palace, room__uuid__in=_ids("room", chosen))
    in_closets = Q(closet__palace=palace, closet__uuid__in=_ids("closet", chosen))
    alone = Q(uuid__in=_ids("drawer", chosen))
    return Drawer.objects.within(palace).filter(alone | in_closets | in_rooms)


def _ids(wanted: str, chosen: Chosen) -> list[UUID]:
    return [uuid for kind, uuid in chosen if kind == wanted]


def move_to_trash(place: Place) -> Batch:
    """Trash a drawer, or all drawers of a closet, room or wing, as one batch.

    Drawers already in the trash stay in their batch.
    """
    return trash_drawers(place.palace, drawers_in(place), place)


@transaction.atomic
def trash_drawers(
    palace: Palace,
    drawers: DrawerQuerySet,
    place: Place | None = None,
    *,
    at: datetime | None = None,
    deleted: Sequence[Fact] = (),
    by_rule: bool = False,
) -> Batch:
    """`move_to_trash` for any drawers of a palace.

    Args:
        place: Their common place, for the activity.
        at: The moment of the batch, from `new_moment`; default: now.
        deleted: Facts deleted at that moment together with these drawers.
        by_rule: The keeping rule of their wing moves them.
    """
    palace.lock()
    at = at or new_moment(palace)
    to_trash = drawers.within(palace).kept()
    scopes = scopes_of(palace, to_trash)
    unsupported = retire_unsupported(palace, Fact.objects.supported_only_by(palace, to_trash))
    dropped = [*deleted, *unsupported]
    # What is found through a room is changed by its key: beside it stands the palace again.
    found = to_trash.order_by().values("pk")
    count = Drawer.objects.within(palace).filter(pk__in=found).update(trashed_at=at)
    reopen_ended(palace, scopes, unsupported, deleted)
    trash_episodes(palace, at)
    batch = Batch(at, count, tuple(fact.text for fact in dropped))
    if count:
        what = _in_words(count, place)
        detail = {
            "batch": batch.key,
            "drawers": count,
            **({"facts": [str(fact.memory) for fact in dropped]} if dropped else {}),
            **(_where(place) if place else {}),
            **({"rule": True} if by_rule else {}),
        }
        _note(palace, Activity.Kind.DRAWERS_TRASHED, f"Moved {what} to the trash.", detail)
    return batch


def restore(palace: Palace, drawers: DrawerQuerySet) -> Restored:
    """Restore the trashed ones of these drawers.

    Facts that lost their evidence or were deleted with them become active again, unless others
    have taken their place.
    """
    with transaction.atomic():
        palace.lock()
        deleted = list(_deleted_with(palace, drawers.within(palace).trashed()))
        restored = restore_drawers(palace, drawers)
        for fact in deleted:
            with suppress(FactConflict):
                reactivate_in_order(palace, fact, BY_TRASH, why=WORDS_ARE_BACK)
    return restored


def restore_drawers(palace: Palace, drawers: DrawerQuerySet) -> Restored:
    """`restore`, but facts that were deleted with the drawers stay deleted."""
    with transaction.atomic():
        palace.lock()
        chosen = drawers.within(palace).trashed()
        rooms = chosen.filter(mined_at=None).order_by("room_id").values_list("room_id", flat=True)
        unmined = tuple(rooms.distinct())
        keys = list(chosen.values_list("pk", flat=True))
        count = chosen.update(trashed_at=None)
        restore_supported(palace, keys)
        restore_episodes(palace, keys)
        if count:
            summary = f"Restored {_in_words(count)} from the trash."
            _note(palace, Activity.Kind.DRAWERS_RESTORED, summary, {"drawers": count})
    return Restored(count, unmined)


def _deleted_with(palace: Palace, drawers: DrawerQuerySet) -> FactQuerySet:
    """Facts deleted at the same moment as one of their source drawers was trashed."""
    versions = Fact.objects.filter(palace=palace, memory=OuterRef(OuterRef("memory")))
    words = Evidence.objects.filter(
        palace=palace,
        drawer__in=drawers.values("pk"),
        drawer__trashed_at=OuterRef("retired_at"),
        fact__in=versions.values("pk"),
    )
    deleted = Fact.objects.within(palace).filter(Exists(words), fate=Fact.Fate.DELETED)
    return deleted.order_by("pk")


def batch_of(palace: Palace, at: datetime) -> DrawerQuerySet:
    """The drawers of a batch that are still in the trash."""
    return Drawer.objects.within(palace).filter(trashed_at=at)


def up_to(key: int) -> DrawerQuerySet:
    """Drawers of any palace that were trashed with this batch or before it."""
    return Drawer.objects.filter(trashed_at__lte=moment_of(key))


def ruled_out(palace: Palace, moments: Collection[datetime]) -> set[datetime]:
    """Those of the batches of these moments that a keeping rule moved to the trash."""
    by_key = {batch_key(at): at for at in moments}
    noted = Activity.objects.filter(
        palace=palace,
        kind=Activity.Kind.DRAWERS_TRASHED,
        detail__rule=True,
        detail__batch__in=list(by_key),
    )
    return {by_key[key] for key in noted.values_list("detail__batch", flat=True)}


def was_batch(palace: Palace, at: datetime) -> bool:
    """Whether this palace has or had such a batch."""
    noted = Activity.objects.filter(
        palace=palace, kind=Activity.Kind.DRAWERS_TRASHED, detail__batch=batch_key(at)
    )
    return batch_of(palace, at).exists() or noted.exists()


def days_left(trashed_at: datetime) -> int:
    """Days until the purge, rounded up; 0 if due."""
    left = trashed_at + timedelta(days=KEPT_DAYS) - timezone.now()
    return max(ceil(left / timedelta(days=1)), 0)


def expired(now: datetime) -> DrawerQuerySet:
    """Drawers of any palace whose time in the trash is over."""
    return Drawer.objects.filter(trashed_at__lt=now - timedelta(days=KEPT_DAYS))


def new_moment(palace: Palace) -> datetime:
    """Now, or just after the latest batch if the clock was set back."""
    trash = Drawer.objects.within(palace).trashed()
    latest = trash.aggregate(Max("trashed_at"))["trashed_at__max"]
    now = timezone.now()
    return max(now, latest + _MICROSECOND) if latest else now


def _in_words(count: int, place: Place | None = None) -> str:
    if count == 1:
        return "a drawer"
    if place is None or isinstance(place, Drawer):
        return f"{count:,} drawers"
    return f"the {count:,} drawers of a {place._meta.verbose_name}"


def _where(place: Place) -> dict[str, str]:
    """The place's id for the activity's link."""
    if isinstance(place, Wing):
        return {"wing": str(place.uuid)}
    return {"room": str((place if isinstance(place, Room) else place.room).uuid)}


def _note(palace: Palace, kind: Activity.Kind, summary: str, detail: dict[str, Any]) -> None:
    Activity.objects.create(palace=palace, kind=kind, summary=summary, detail=detail)
