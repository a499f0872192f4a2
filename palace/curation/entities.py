"""Merging and splitting of entities, with undo."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from language.errors import PalaceError
from language.facts import USER
from language.slugs import slug_of
from language.storable import LABEL_LENGTH, storable_label
from palace.curation.entity_rows import Moved, join, split_rows, undo_merge, undo_split
from palace.models import Activity, Entity, Fact, Mention, Palace

_MERGED, _SPLIT = Activity.Kind.ENTITIES_MERGED, Activity.Kind.ENTITY_SPLIT
# Summaries of activities about deleted entities; the original summary contains names.
FORGOTTEN = {
    _MERGED: "Merged two names that were deleted for good since.",
    _SPLIT: "Split a name that was deleted for good since.",
    Activity.Kind.ENTITY_UNDONE: "Undid a change of a name that was deleted for good since.",
}


class BadEntity(PalaceError):
    """An invalid operation on an entity; the message says what to do."""

    code = "bad_entity"


@dataclass(frozen=True, slots=True)
class EntityChange:
    """
    Attributes:
        entity: The merged entity, or the new one that was split off.
        activity: The argument for `undo`.
    """

    entity: Entity
    activity: Activity


@transaction.atomic
def merge_entities(palace: Palace, keep: Entity, other: Entity) -> EntityChange:
    """Merge two entities: facts, mentions and names of `other` move to `keep`.

    Of contradicting facts the newer one stays active. Idempotent: repeated, it returns the
    existing change.

    Raises:
        BadEntity: they are the same, `other` is the user, or one of them does not exist.
    """
    palace.lock()
    if keep.pk == other.pk:
        raise BadEntity("A name cannot be merged with itself. Choose another one.")
    keep, before = _present(palace, keep), _merged_before(palace, keep, other)
    if before is not None:
        return EntityChange(keep, before)
    other = _present(palace, other)
    if other.name == USER:
        raise BadEntity("You are called You here. Merge the other name into You instead.")
    moved = join(palace, other, keep)
    aliases = _unknown_to(keep, [other.name, *other.aliases])
    keep.aliases = [*keep.aliases, *aliases]
    keep.save(update_fields=["aliases"])
    record = {**moved.record(), "aliases": aliases, "entity": _described(other)}
    summary = f"“{_short(other.name)}” was merged into “{_short(keep.name)}”."
    activity = _note(palace, _MERGED, summary, (keep, other), record)
    return EntityChange(keep, activity)


@transaction.atomic
def split_entity(
    palace: Palace,
    entity: Entity,
    *,
    name: str,
    kind: str = "",
    facts: Collection[UUID] = (),
    drawers: Collection[UUID] = (),
    aliases: Collection[str] = (),
) -> EntityChange:
    """Split an entity into two that share a name.

    A fact that was superseded by a fact of the other entity becomes active again.

    Args:
        name: Of the new entity; it may be the same, then mining assigns the name to the first.
        kind: Of the new entity; default: that of the first.
        facts: Uuids of the facts to move; the versions they refined move too.
        drawers: Uuids of the drawers whose mentions move.
        aliases: The aliases to move.

    Raises:
        BadEntity: it does not exist, nothing would move, or the name is taken.
    """
    palace.lock()
    entity = _present(palace, entity)
    rows = _facts(palace, entity, facts)
    mentions = _mentions(palace, entity, drawers)
    taken = _aliases(entity, aliases)
    if not (rows or mentions or taken):
        raise BadEntity("Nothing would go to the new one. Choose facts, drawers or other names.")
    new = _new(palace, entity, name, kind or entity.kind, taken)
    record = split_rows(palace, entity, new, rows, mentions)
    entity.aliases = [alias for alias in entity.aliases if alias not in taken]
    entity.save(update_fields=["aliases"])
    summary = f"“{_short(new.name)}” was split off “{_short(entity.name)}”."
    activity = _note(palace, _SPLIT, summary, (entity, new), {**record, "aliases": taken})
    return EntityChange(new, activity)


@transaction.atomic
def rename_entity(palace: Palace, entity: Entity, name: str, *, keeps_old: bool = True) -> str:
    """Give an entity another name; returns the one before.

    Args:
        keeps_old: The old name becomes an alias, so that mining and facts still find it by both.

    Raises:
        BadEntity: it does not exist, is the user, or the name is empty, too long or taken.
    """
    palace.lock()
    entity = _present(palace, entity)
    if entity.name == USER:
        raise BadEntity("You are called You here. This name stays.")
    is_long, name = len(name) > LABEL_LENGTH, storable_label(" ".join(name.split()))
    if is_long or not name:
        raise BadEntity(f"Write a name of at most {LABEL_LENGTH} characters.")
    before = entity.name
    # One of two with the same name has a numbered slug, which stays with the name.
    slug = entity.slug if slug_of(name) == slug_of(before) else slug_of(name)
    others = Entity.objects.filter(palace=palace, kind=entity.kind, slug=slug)
    if others.exclude(pk=entity.pk).exists():
        raise BadEntity(
            f"Another {entity.kind} has the name “{_short(name)}”. Choose another name, or merge "
            "the two."
        )
    names = [*entity.aliases, *([before] if keeps_old else [])]
    entity.aliases = [one for one in dict.fromkeys(names) if one != name]
    entity.name, entity.slug = name, slug
    entity.save(update_fields=["name", "slug", "aliases"])
    return before


@transaction.atomic
def undo(palace: Palace, activity: Activity) -> bool:
    """Undo a merge or a split; newer facts stay and take precedence.

    Returns:
        True if it was undone now; False if it was undone before.

    Raises:
        BadEntity: it is neither, a later change depends on it, or too much was deleted.
    """
    palace.lock()
    present = Activity.objects.filter(palace=palace, pk=activity.pk).first()
    if present is None or present.kind not in (_MERGED, _SPLIT):
        raise BadEntity("Only merges and splits can be undone here. Choose one of those.")
    if present.detail.get("undone"):
        return False
    _refuse_if_built_on(palace, present)
    record = present.detail.get("undo")
    entity = _about(palace, present)
    if record is None or entity is None:
        raise BadEntity(
            "What this was about no longer exists, so it cannot be undone. "
            "Split or merge what is here instead."
        )
    if present.kind == _MERGED:
        _undo_merge(palace, entity, record, present)
    else:
        _undo_split(palace, entity, record, present)
    present.detail = {name: of for name, of in present.detail.items() if name != "undo"}
    present.detail["undone"] = True
    present.save(update_fields=["detail"])
    _note_undone(palace, present)
    return True


def forget_changes(palace: Palace, gone: Collection[UUID]) -> None:
    """Remove the names of purged entities from activities.

    Call it in the transaction that deletes them; their merges and splits cannot be undone then.
    """
    about = Q(pk__in=[])
    for uuid in gone:
        about |= Q(detail__about__contains=[str(uuid)])
    for activity in Activity.objects.filter(about, palace=palace, kind__in=FORGOTTEN):
        activity.summary = FORGOTTEN[Activity.Kind(activity.kind)]
        activity.detail.pop("undo", None)
        activity.save(update_fields=["summary", "detail"])


def _undo_merge(palace: Palace, keep: Entity, record: dict[str, Any], activity: Activity) -> None:
    described = record["entity"]
    taken = Entity.objects.filter(palace=palace, kind=described["kind"], slug=described["slug"])
    if taken.exists():
        raise BadEntity(
            f"There is another “{_short(described['name'])}” now. "
            "Merge that one first, and then split what should be apart."
        )
    moved = Moved.read(record)
    if moved.has_rows and not _anything_left(palace, moved):
        raise BadEntity("Nothing of what was merged is left, so there is nothing to undo.")
    other = Entity(palace=palace, **described)
    other.save(force_insert=True)
    keep.aliases = [alias for alias in keep.aliases if alias not in record["aliases"]]
    keep.save(update_fields=["aliases"])
    undo_merge(palace, keep, other, moved, merged_at=activity.created_at)


def _undo_split(palace: Palace, entity: Entity, record: dict[str, Any], activity: Activity) -> None:
    new = Entity.objects.filter(palace=palace, uuid=activity.detail["about"][1]).first()
    if new is None:
        raise BadEntity("What was split off no longer exists, so there is nothing to undo.")
    undo_split(palace, entity, new, record)
    aliases = _unknown_to(entity, record["aliases"])
    entity.aliases = [*entity.aliases, *aliases]
    entity.save(update_fields=["aliases"])


def _present(palace: Palace, entity: Entity) -> Entity:
    """The entity, read again."""
    present = Entity.objects.filter(palace=palace, pk=entity.pk).first()
    if present is None:
        raise BadEntity(
            f"“{_short(entity.name)}” no longer exists: it was merged with another, or its sources "
            "were deleted for good. Search for it by its name."
        )
    return present


def _merged_before(palace: Palace, keep: Entity, other: Entity) -> Activity | None:
    """The activity of an earlier merge of these two, unless undone."""
    if Entity.objects.filter(palace=palace, pk=other.pk).exists():
        return None
    merged = Activity.objects.filter(
        palace=palace, kind=_MERGED, detail__about=[str(keep.uuid), str(other.uuid)]
    )
    return merged.filter(detail__undone__isnull=True).order_by("pk").last()


def _facts(palace: Palace, entity: Entity, uuids: Collection[UUID]) -> list[Fact]:
    about = Q(subject=entity) | Q(object_entity=entity)
    rows = list(Fact.objects.within(palace).filter(about, uuid__in=uuids).order_by("pk"))
    if len(rows) < len(set(uuids)):
        raise BadEntity(f"Not all of these facts are about “{_short(entity.name)}”. Choose again.")
    return rows


def _mentions(palace: Palace, entity: Entity, drawers: Collection[UUID]) -> list[Mention]:
    rows = Mention.objects.filter(palace=palace, entity=entity, drawer__uuid__in=drawers)
    return list(rows.order_by("pk"))


def _aliases(entity: Entity, wanted: Collection[str]) -> list[str]:
    known = {alias.casefold(): alias for alias in entity.aliases}
    unknown = [alias for alias in wanted if alias.casefold() not in known]
    if unknown:
        raise BadEntity(
            f"“{_short(unknown[0])}” is no other name of “{_short(entity.name)}”. Choose again."
        )
    return [known[alias.casefold()] for alias in wanted]


def _new(palace: Palace, entity: Entity, name: str, kind: str, aliases: list[str]) -> Entity:
    """Create the entity to split off; with the name of the first it gets a numbered slug."""
    name = storable_label(" ".join(name.split()))
    if not name:
        raise BadEntity("Write a name for the new one.")
    if kind not in Entity.Kind:
        raise BadEntity(f"Choose one of the kinds: {', '.join(Entity.Kind.values)}.")
    slug = slug_of(name)
    taken = set(Entity.objects.filter(palace=palace, kind=kind).values_list("slug", flat=True))
    if slug in taken and slug != entity.slug:
        raise BadEntity(
            f"Another {kind} has the name “{_short(name)}”. "
            "Choose another name, or merge the two afterwards."
        )
    if slug in taken:
        numbered = (f"{slug[: LABEL_LENGTH - 10]}-{number}" for number in count(2))
        slug = next(one for one in numbered if one not in taken)
    others = [alias for alias in aliases if alias.casefold() != name.casefold()]
    return Entity.objects.create(palace=palace, kind=kind, slug=slug, name=name, aliases=others)


def _unknown_to(entity: Entity, names: Collection[str]) -> list[str]:
    """The distinct names that the entity does not have yet."""
    known = {name.casefold() for name in (entity.name, *entity.aliases)}
    unknown = {name.casefold(): name for name in names if name.casefold() not in known}
    return list(unknown.values())


def _described(entity: Entity) -> dict[str, Any]:
    """All that is needed to create it again."""
    return {
        "id": entity.pk,
        "uuid": str(entity.uuid),
        "kind": entity.kind,
        "slug": entity.slug,
        "name": entity.name,
        "aliases": entity.aliases,
    }


def _about(palace: Palace, activity: Activity) -> Entity | None:
    """The entity that existed before and after the change."""
    about = activity.detail.get("about") or [None]
    return Entity.objects.filter(palace=palace, uuid=about[0]).first()


def _anything_left(palace: Palace, moved: Moved) -> bool:
    facts = Fact.objects.within(palace).filter(pk__in=[*moved.subjects, *moved.objects])
    mentions = Mention.objects.filter(palace=palace, pk__in=moved.mentions)
    at_places = Mention.objects.filter(
        palace=palace, drawer__in=[drawer for drawer, _start, _end in moved.twice]
    )
    return facts.exists() or mentions.exists() or at_places.exists()


def _refuse_if_built_on(palace: Palace, activity: Activity) -> None:
    about = Q(pk__in=[])
    for uuid in activity.detail.get("about", ()):
        about |= Q(detail__about__contains=[uuid])
    later = Activity.objects.filter(
        about, palace=palace, kind__in=(_MERGED, _SPLIT), pk__gt=activity.pk
    )
    on_top = next((one for one in later.order_by("-pk") if not one.detail.get("undone")), None)
    if on_top is not None:
        raise BadEntity(f"Something was done after this. Undo that first: {on_top.summary}")


def _note(
    palace: Palace,
    kind: Activity.Kind,
    summary: str,
    entities: tuple[Entity, Entity],
    record: dict[str, Any],
) -> Activity:
    rows = {*record["subjects"], *record["objects"]}
    detail = {
        "about": [str(entity.uuid) for entity in entities],
        "facts": len(rows),
        "mentions": len(record["mentions"]),
        "undo": record,
    }
    return Activity.objects.create(palace=palace, kind=kind, summary=summary, detail=detail)


def _note_undone(palace: Palace, undone: Activity) -> None:
    what = "a merge" if undone.kind == _MERGED else "a split"
    Activity.objects.create(
        palace=palace,
        kind=Activity.Kind.ENTITY_UNDONE,
        summary=f"Undid {what}: {undone.summary}"[:300],
        detail={"about": undone.detail["about"], "activity": str(undone.uuid)},
    )


def _short(name: str) -> str:
    """Shortened, so that two names fit in an activity's summary."""
    return name if len(name) <= 100 else f"{name[:99]}…"
