"""Restore wings, rooms, closets and drawers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from language.transcripts import ROLES
from palace.models import Closet, Drawer, Mention, Palace, Room, Telling, Wing, WingAlias
from palace.storage import insert_rows, record_accepted
from palace.transfer.restore.record_fields import Fields, RestoredKeys, as_json

DRAWER = (
    *("palace_id", "uuid", "room_id", "closet_id", "number", "source", "conversation"),
    *("external_id", "position", "role", "speaker", "agent", "text", "said_at"),
    *("metadata", "tags", "preference", "terms", "filed_at", "facts_read_at", "trashed_at"),
)
MENTION = ("palace_id", "entity_id", "drawer_id", "start", "end")
INGESTION = (
    *("palace_id", "drawer_id", "by", "agent", "run", "metadata"),
    *("prompt", "judging_prompt", "filters"),
)


def put_palace(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    """Restore the highest numbers, so that those of purged rows are not reused."""
    for each in records:
        Palace.objects.filter(pk=placed.palace.pk).update(
            highest_wing=Greatest("highest_wing", each.count("highest_wing")),
            highest_room=Greatest("highest_room", each.count("highest_room")),
        )


def put_wings(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    columns = (
        *("palace_id", "uuid", "number", "slug", "name", "kind", "created_at"),
        *("kept_months", "never"),
    )
    palace = placed.palace
    rows = (
        (
            *(palace.pk, placed.id_of(each), each.count("number"), each.text("slug")),
            *(each.text("name"), each.one_of("kind", Wing.Kind.values), each.time("created_at")),
            *(each.count_or_none("kept_months"), each.texts_if_any("never")),
        )
        for each in records
    )
    insert_rows(Wing, columns, rows)
    placed.wings |= dict(_written(placed, Wing, records).values_list("number", "pk"))
    aliases = (
        (palace.pk, placed.wings[each.count("number")], slug)
        for each in records
        for slug in each.texts("aliases")
    )
    insert_rows(WingAlias, ("palace_id", "wing_id", "slug"), aliases)


def put_rooms(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    columns = (
        *("palace_id", "uuid", "wing_id", "number", "source", "external_id", "agent", "title"),
        *("started_at", "ended_at", "highest_drawer", "created_at", "episode_due_at"),
        *("reviewed_at", "recalled_at"),
    )
    palace = placed.palace
    rows = (
        (
            *(palace.pk, placed.id_of(each), placed.wing(each), each.count("number")),
            *(each.text("source"), each.text("conversation"), each.text("agent")),
            *(each.text("title"), each.time("started_at"), each.time("ended_at")),
            *(each.count("highest_drawer"), each.time("created_at")),
            each.time_or_none("episode_due_at"),
            each.time_or_none("reviewed_at"),
            each.time_or_none("recalled_at"),
        )
        for each in records
    )
    insert_rows(Room, columns, rows)
    placed.rooms |= dict(_written(placed, Room, records).values_list("number", "pk"))


def put_closets(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    palace = placed.palace
    rows = (
        (
            *(palace.pk, placed.id_of(each), placed.room(each)),
            *(each.text("slug"), each.text("title"), each.time("created_at")),
        )
        for each in records
    )
    insert_rows(Closet, ("palace_id", "uuid", "room_id", "slug", "title", "created_at"), rows)
    closets = _written(placed, Closet, records).values_list("room__number", "slug", "pk")
    placed.closets |= {(room, slug): key for room, slug, key in closets}


def put_drawers(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    palace = placed.palace
    insert_rows(Drawer, DRAWER, (_drawer(placed, each) for each in records))
    keys = dict(_written(placed, Drawer, records).values_list("uuid", "pk"))
    record_accepted(palace, ((placed.id_of(each), each.text("text")) for each in records))
    beside = [(keys[placed.id_of(each)], each) for each in records]
    insert_rows(Mention, MENTION, (row for each in beside for row in _mentions(placed, *each)))
    insert_rows(Telling, INGESTION, (row for each in beside for row in _ingestion(palace, *each)))


def _written(
    placed: RestoredKeys, kind: type[Wing | Room | Closet | Drawer], records: Sequence[Fields]
) -> QuerySet[Any, Any]:
    """The restored rows of these records."""
    rows = kind._default_manager.filter(palace=placed.palace)
    return rows.filter(uuid__in=[placed.id_of(each) for each in records])


def _drawer(placed: RestoredKeys, each: Fields) -> tuple[object, ...]:
    # Mined drawers have a closet, by which `make_findable` finds them; others are mined later.
    was_mined = each.is_so("mined")
    return (
        *(placed.palace.pk, placed.id_of(each), placed.room(each)),
        *(placed.closet(each) if was_mined else None, each.count("number")),
        *each.message(),
        *(each.count("position"), each.one_of("role", ROLES), each.text("speaker")),
        # Older exports do not have it.
        each.text_or_none("agent") or "",
        *(each.text("text"), each.time("said_at"), as_json(each.mapping_or_none("metadata"))),
        *(as_json(_tags(each)), each.share("preference"), 0, each.time("filed_at")),
        timezone.now() if each.is_so("read_for_facts") else None,
        each.time_or_none("trashed_at"),
    )


def _tags(each: Fields) -> dict[str, list[str]]:
    tags = Fields(each.mapping("tags"))
    return {letter: tags.texts(letter) for letter in each.mapping("tags")}


def _mentions(placed: RestoredKeys, drawer: int, each: Fields) -> Iterator[tuple[object, ...]]:
    for mention in each.records("mentions"):
        start, end = mention.span_in(each.text("text"))
        yield placed.palace.pk, placed.entity(mention.record("entity")), drawer, start, end


def _ingestion(palace: Palace, drawer: int, each: Fields) -> Iterator[tuple[object, ...]]:
    if (ingestion := each.record_or_none("telling")) is not None:
        yield (
            *(
                palace.pk,
                drawer,
                ingestion.text("by"),
                ingestion.text("agent"),
                ingestion.text("run"),
            ),
            *(
                as_json(ingestion.mapping("metadata")),
                ingestion.text("prompt"),
                ingestion.text("judging_prompt"),
            ),
            as_json(ingestion.mapping_or_none("filters")),
        )
