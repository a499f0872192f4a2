"""Renaming and merging: a wing's former names become aliases, so that mining still finds them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import connection, transaction
from django.db.models.functions import Greatest

from language.errors import PalaceError
from language.extraction import WingFound
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from palace.curation.empty_places import NoWayBack, described_wing, restore_wing, take_former_slots
from palace.curation.refiling import GONE, BadMove, described, join_rooms, separate_room
from palace.curation.retention import (
    BadKeeping,
    Keeping,
    apply_keeping,
    keep_by_rules,
    preview_keeping,
    set_keeping,
    undo_keeping,
    with_rules,
)
from palace.curation.trash import drawers_in
from palace.models import Activity, Closet, Palace, Room, Wing, WingAlias
from palace.storage import wing_for

__all__ = [
    "RESERVED",
    "BadKeeping",
    "BadWing",
    "Keeping",
    "Merged",
    "NameTaken",
    "NoWayBack",
    "apply_keeping",
    "change_wing",
    "keep_by_rules",
    "merge_wings",
    "preview_keeping",
    "preview_merge",
    "rename",
    "set_keeping",
    "undo_keeping",
    "undo_merge_wings",
    "wing_called",
    "with_rules",
]

# The slug of the wing for unmined rooms, reserved also before it exists.
RESERVED = "unsorted"


class BadWing(PalaceError):
    """An invalid operation on a wing; the message says what to do."""

    code = "bad_wing"


class NameTaken(BadWing):
    """Another wing has this name or alias.

    Attributes:
        by: That wing; the two can be merged.
    """

    code = "name_taken"

    def __init__(self, name: str, by: Wing) -> None:
        called = "" if by.name == name else f", which is called “{by.name}” now"
        super().__init__(
            f"Another wing has the name “{name}”{called}. Choose another name, or merge the two."
        )
        self.by = by


@dataclass(frozen=True, slots=True)
class Merged:
    """
    Attributes:
        rooms: Number of moved rooms with drawers outside the trash.
        drawers: Number of moved drawers outside the trash.
        trashed: Number of moved drawers in the trash.
        activity: The argument for `undo_merge_wings`; None before it is done.
    """

    into: Wing
    rooms: int
    drawers: int
    trashed: int
    activity: Activity | None = field(default=None, compare=False)


@transaction.atomic
def rename(place: Room | Closet, title: str) -> str:
    """Give a room or closet another title; returns the one before.

    Mining keeps the titles of filed rooms, and finds a closet by its slug, which stays.

    Raises:
        BadMove: the title is empty or too long, or the place is gone.
    """
    place.palace.lock()
    if len(title) > LABEL_LENGTH:
        raise BadMove(f"This title is too long. Write at most {LABEL_LENGTH} characters.")
    title = storable_label(" ".join(title.split()))
    if not title:
        raise BadMove(f"A {place._meta.verbose_name} needs a title. Write one.")
    before, place.title = place.title, title
    if not type(place).objects.within(place.palace).filter(pk=place.pk).update(title=title):
        raise BadMove(GONE)
    return before


@transaction.atomic
def change_wing(
    wing: Wing, *, name: str, kind: str, aliases: Collection[str] | None = None
) -> Wing:
    """Set a wing's name and kind. Its former name becomes an alias.

    Args:
        aliases: Replaces the other aliases; None: unchanged.

    Raises:
        NameTaken: another wing has that name or alias.
        BadWing: the name or kind is invalid, or the wing was deleted.
    """
    palace = _locked(wing)
    wing = _present(wing)
    name = _checked(name)
    if kind not in Wing.Kind:
        raise BadWing("Choose one of the kinds: person, project, topic or agent.")
    slug, former = slug_of(name), wing.name
    if slug != wing.slug:
        _refuse_taken(wing, name, slug)
        _add_aliases(wing, [wing.slug, slug])
    summary = _changes(wing, name, kind)
    wing.name, wing.slug, wing.kind = name, slug, kind
    wing.save(update_fields=["name", "slug", "kind"])
    if aliases is not None and _replace_aliases(wing, [*aliases, former]):
        summary = summary or f"“{_short(name)}” is found by other names now."
    if summary:
        Activity.objects.create(
            palace=palace,
            kind=Activity.Kind.WING_CHANGED,
            summary=summary[:300],
            detail={"wing": str(wing.uuid)},
        )
    return wing


def wing_called(palace: Palace, name: str) -> Wing:
    """The wing with this name or alias; created as a topic if missing.

    The caller locks the palace.

    Raises:
        BadWing: the name is invalid.
    """
    name = _checked(name)
    if slug_of(name) == RESERVED:
        raise BadWing(f"“{name}” is the name of the unsorted wing. Choose another name.")
    return wing_for(palace, WingFound(Wing.Kind.TOPIC, name))


def preview_merge(wing: Wing, into: Wing) -> Merged:
    """What `merge_wings` would move.

    Raises:
        BadWing: these two cannot be merged.
    """
    _refuse_unsorted(wing, into)
    if wing.pk == into.pk:
        raise BadWing("A wing cannot be merged with itself. Choose another one.")
    drawers = drawers_in(wing)
    return Merged(
        into=into,
        rooms=drawers.kept().order_by().values("room").distinct().count(),
        drawers=drawers.kept().count(),
        trashed=drawers.trashed().count(),
    )


@transaction.atomic
def merge_wings(wing: Wing, into: Wing) -> Merged:
    """Move all rooms of `wing` to `into`, and delete `wing`; its names become aliases of `into`.

    Pointers stay valid, because rooms keep their numbers.

    Raises:
        BadWing: these two cannot be merged, or one of them was deleted.
    """
    palace = _locked(wing)
    wing, into = _present(wing), _present(into)
    merged = preview_merge(wing, into)
    record = _record(wing)
    record["joined"] = _join_rooms(wing, into)
    Room.objects.filter(palace=palace, wing=wing).update(wing=into, area="", is_settled=True)
    WingAlias.objects.filter(palace=palace, wing=wing).update(wing=into)
    _add_aliases(into, [wing.slug])
    _remove(wing)
    rooms = "1 room" if merged.rooms == 1 else f"{merged.rooms:,} rooms"
    drawers = "1 drawer" if merged.drawers == 1 else f"{merged.drawers:,} drawers"
    detail = {"wing": str(into.uuid), "rooms": merged.rooms, "drawers": merged.drawers}
    activity = Activity.objects.create(
        palace=palace,
        kind=Activity.Kind.WINGS_MERGED,
        summary=f"“{_short(wing.name)}” is part of “{_short(into.name)}” now: "
        f"{rooms} with {drawers} moved.",
        detail={**detail, "undo": record},
    )
    return replace(merged, activity=activity)


@transaction.atomic
def undo_merge_wings(palace: Palace, activity: Activity) -> Wing | None:
    """Undo a merge: its rooms and names go back to the wing that was merged.

    Rooms that were moved elsewhere since stay there; rooms of both wings are taken apart again.

    Returns:
        The wing; None if this was undone before.

    Raises:
        NoWayBack: the wing it became part of is gone, or nothing of it is left.
    """
    palace.lock()
    present = Activity.objects.get(palace=palace, pk=activity.pk)
    if present.detail.get("undone"):
        return None
    record = present.detail.get("undo")
    into = Wing.objects.within(palace).filter(uuid=present.detail.get("wing")).first()
    if record is None or into is None:
        raise NoWayBack(
            "The wing it became part of no longer exists. If that was merged too, undo that first."
        )
    wing = _restored(palace, into, record)
    present.detail = {name: of for name, of in present.detail.items() if name != "undo"}
    present.detail["undone"] = True
    present.save(update_fields=["detail"])
    Activity.objects.create(
        palace=palace,
        kind=Activity.Kind.WING_CHANGED,
        summary=f"“{_short(wing.name)}” is a wing of its own again."[:300],
        detail={"wing": str(wing.uuid)},
    )
    return wing


def _record(wing: Wing) -> dict[str, Any]:
    """What undoing the merge of a wing needs."""
    rooms = Room.objects.filter(palace=wing.palace_id, wing=wing)
    areas = rooms.exclude(area="").order_by().values_list("area")
    described = described_wing(wing)
    return {
        "aliases": described.pop("aliases"),
        "wing": described,
        "rooms": list(rooms.order_by("pk").values_list("pk", flat=True)),
        "slots": dict(rooms.order_by("pk").values_list("pk", "slot")),
        "areas": dict(areas.annotate(keys=ArrayAgg("pk"))),
        "unsettled": list(rooms.filter(is_settled=False).values_list("pk", flat=True)),
    }


def _restored(palace: Palace, into: Wing, record: dict[str, Any]) -> Wing:
    rooms = Room.objects.within(palace).filter(wing=into)
    moved = rooms.filter(pk__in=record["rooms"])
    joined = [(rooms.filter(pk=each["into"]).first(), each) for each in record["joined"]]
    if not moved.exists() and not any(room for room, _ in joined):
        raise NoWayBack("Nothing of what was merged is left here, so there is nothing to undo.")
    # Its aliases are those of the other wing meanwhile.
    wing = restore_wing(palace, record["wing"])
    for area, keys in record.get("areas", {}).items():
        moved.filter(pk__in=keys).update(area=area)
    moved.filter(pk__in=record.get("unsettled", ())).update(is_settled=False)
    moved.update(wing=wing)
    for room, each in joined:
        if room is not None:
            separate_room(room, wing, each)
    take_former_slots(palace, {int(key): slot for key, slot in record.get("slots", {}).items()})
    names = WingAlias.objects.filter(palace=palace, wing=into)
    names.filter(slug__in=[*record["aliases"], wing.slug]).update(wing=wing)
    return wing


def _locked(wing: Wing) -> Palace:
    """Lock the wing's palace until the transaction ends."""
    palace = wing.palace
    palace.lock()
    return palace


def _present(wing: Wing) -> Wing:
    """The wing, read again."""
    _refuse_unsorted(wing)
    present = Wing.objects.filter(palace=wing.palace_id, pk=wing.pk).first()
    if present is None:
        raise BadWing(
            f"The wing “{wing.name}” no longer exists: it was merged with another, or its drawers "
            "were deleted for good. Go back to the palace to find its rooms."
        )
    return present


def _refuse_unsorted(*wings: Wing) -> None:
    if any(wing.number == Wing.UNSORTED for wing in wings):
        raise BadWing(
            "The unsorted wing stays as it is: conversations wait there until they are mined. "
            "Choose another wing."
        )


def _checked(name: str) -> str:
    """The name on one line.

    Raises:
        BadWing: it is invalid.
    """
    name = storable_label(" ".join(name.split())) if len(name) <= LABEL_LENGTH else name
    if not name:
        raise BadWing("A wing needs a name. Write one.")
    if len(name) > LABEL_LENGTH:
        raise BadWing(f"This name is too long. Write at most {LABEL_LENGTH} characters.")
    return name


def _refuse_taken(wing: Wing, name: str, slug: str) -> None:
    if slug == RESERVED:
        raise BadWing(f"“{name}” is the name of the unsorted wing. Choose another name.")
    others = Wing.objects.filter(palace=wing.palace_id).exclude(pk=wing.pk)
    taken = (
        others.filter(slug=slug).first()
        or others.filter(aliases__palace=wing.palace_id, aliases__slug=slug).first()
    )
    if taken is not None:
        raise NameTaken(name, taken)


def _add_aliases(wing: Wing, slugs: Iterable[str]) -> None:
    """Add aliases; existing ones, also of other wings, are unchanged."""
    rows = [WingAlias(palace_id=wing.palace_id, wing=wing, slug=slug) for slug in slugs]
    WingAlias.objects.bulk_create(rows, ignore_conflicts=True)


def _replace_aliases(wing: Wing, names: Collection[str]) -> bool:
    """Replace all aliases except its own slug; True if they changed."""
    called = {slug_of(name): name for name in map(_checked, names)}
    called.pop(wing.slug, None)
    for slug, name in called.items():
        _refuse_taken(wing, name, slug)
    existing = WingAlias.objects.filter(palace=wing.palace_id, wing=wing)
    before = set(existing.exclude(slug=wing.slug).values_list("slug", flat=True))
    existing.filter(slug__in=before - called.keys()).delete()
    _add_aliases(wing, called.keys() - before)
    return before != called.keys()


def _changes(wing: Wing, name: str, kind: str) -> str:
    """A sentence on what changes; empty if nothing does."""
    label = Wing.Kind(kind).label.lower()
    kind_now = f"{'an' if label[0] in 'aeiou' else 'a'} {label}"
    if name != wing.name:
        also = f", and {kind_now}" if kind != wing.kind else ""
        return f"“{_short(wing.name)}” is called “{_short(name)}” now{also}."
    return f"“{_short(name)}” is {kind_now} now." if kind != wing.kind else ""


def _short(name: str) -> str:
    """Shortened, so that two names fit in an activity's summary."""
    return name if len(name) <= 100 else f"{name[:99]}…"


def _join_rooms(wing: Wing, into: Wing) -> list[dict[str, Any]]:
    """Join rooms of conversations that have a room in both wings; returns what undoing needs."""
    existing = Room.objects.filter(palace=wing.palace_id, wing=into)
    there = {(room.source, room.external_id): room for room in existing}
    joined = []
    for room in Room.objects.filter(palace=wing.palace_id, wing=wing):
        other = there.get((room.source, room.external_id))
        if other is not None:
            joined.append({**described(room), "into": other.pk})
            join_rooms(room, other)
    return joined


def _remove(wing: Wing) -> None:
    Palace.objects.filter(pk=wing.palace_id).update(
        highest_wing=Greatest("highest_wing", wing.number)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM palace_wing WHERE palace_id = %s AND id = %s", [wing.palace_id, wing.pk]
        )
