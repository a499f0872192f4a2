"""Restore wings, rooms, closets and drawers; entities, facts, their history, episodes, activity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from language.english.topics.wings import areas
from language.transcripts import ROLES
from palace.models import (
    Activity,
    Closet,
    Drawer,
    Entity,
    Episode,
    Fact,
    FactEvent,
    Mention,
    Palace,
    Room,
    Telling,
    Wing,
    WingAlias,
)
from palace.storage import insert_rows, record_accepted
from palace.transfer.record_fields import Fields, RestoredKeys, as_json, present

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
Row = tuple[object, ...]


def put_palace(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    """Restore the rejected areas, and the highest numbers: those of purged rows are not reused."""
    for each in records:
        Palace.objects.filter(pk=placed.palace.pk).update(
            highest_wing=Greatest("highest_wing", each.count("highest_wing")),
            highest_room=Greatest("highest_room", each.count("highest_room")),
            rejected_areas=sorted(_known_areas() & {*each.texts_if_any("rejected_areas")}),
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
        *("reviewed_at", "recalled_at", "area", "is_settled"),
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
            _area(each),
            each.is_so_if_any("settled"),
        )
        for each in records
    )
    insert_rows(Room, columns, rows)
    placed.rooms |= dict(_written(placed, Room, records).values_list("number", "pk"))


def _area(each: Fields) -> str:
    """The area of life for whose wing a room waits; none that mining would not make a wing of."""
    area = each.text_or_none("area")
    return area if area in _known_areas() else ""


def _known_areas() -> set[str]:
    return {area.name for area in areas()}


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


def put_entities(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    palace = placed.palace
    rows = (
        (
            *(palace.pk, placed.id_of(each), each.one_of("kind", Entity.Kind.values)),
            *(each.text("slug"), each.text("name"), each.texts("aliases")),
            each.time("created_at"),
        )
        for each in records
    )
    columns = ("palace_id", "uuid", "kind", "slug", "name", "aliases", "created_at")
    insert_rows(Entity, columns, rows)
    ids = [placed.id_of(each) for each in records]
    written = Entity.objects.filter(palace=palace, uuid__in=ids)
    placed.entities |= {
        (kind, slug): key for kind, slug, key in written.values_list("kind", "slug", "pk")
    }


def put_facts(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    columns = (
        *("palace_id", "uuid", "memory", "type", "subject_id", "predicate", "object"),
        *("object_entity_id", "aspect", "stance", "text", "confidence", "category", "tags"),
        *("metadata", "agent", "run", "single"),
        *("valid_from", "valid_to", "recorded_at", "retired_at", "fate"),
    )
    rows = ((*_statement(placed, each), *_clocks(each)) for each in records)
    insert_rows(Fact, columns, rows)
    _link_versions(placed, records)
    _put_evidence(placed, records)


def _statement(placed: RestoredKeys, each: Fields) -> Row:
    other = each.record_or_none("object_entity")
    return (
        *(placed.palace.pk, placed.id_of(each), placed.id_of(each, "memory")),
        *(each.one_of("type", Fact.Type.values), placed.entity(each.record("subject"))),
        *(each.text("predicate"), each.text("object"), placed.entity(other) if other else None),
        *(each.text("aspect"), each.text("stance"), each.text("text"), each.share("confidence")),
        *(each.text("category"), each.texts("tags"), as_json(each.mapping("metadata"))),
        *(each.text("agent"), each.text("run"), each.is_so("single")),
    )


def _clocks(each: Fields) -> Row:
    return (
        *(each.time_or_none("valid_from"), each.time_or_none("valid_to")),
        *(each.time("recorded_at"), each.time_or_none("retired_at")),
        each.one_of("fate", Fact.Fate.values),
    )


def _link_versions(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    """Link superseded facts, which come earlier, in this chunk or a previous one."""
    linked = [each for each in records if each.text_or_none("supersedes")]
    new = [placed.id_of(each) for each in linked]
    old = [placed.id_of(each, "supersedes") for each in linked]
    statement = """
        UPDATE palace_fact f SET supersedes_id = o.id
        FROM unnest(%s::uuid[], %s::uuid[]) AS n (new, old)
        JOIN palace_fact o ON o.palace_id = %s AND o.uuid = n.old
        WHERE f.palace_id = %s AND f.uuid = n.new
    """
    key = placed.palace.pk
    if linked and _fact_written(statement, [new, old, key, key]) < len(linked):
        raise ValueError("it supersedes a fact that is not before it")


def _put_evidence(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    rows = [row for each in records for row in _words(placed.id_of(each), each)]
    statement = """
        INSERT INTO palace_evidence (palace_id, fact_id, drawer_id, start, "end")
        SELECT f.palace_id, f.id, d.id, n.start, n."end"
        FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::int[], %s::int[])
            AS n (fact, source, conversation, message, start, "end")
        JOIN palace_fact f ON f.palace_id = %s AND f.uuid = n.fact
        JOIN palace_drawer d ON d.palace_id = f.palace_id AND d.source = n.source
            AND d.conversation = n.conversation AND d.external_id = n.message
        WHERE n.start <= n."end" AND n."end" <= char_length(d.text)
    """
    values = [*map(list, zip(*rows, strict=True)), placed.palace.pk] if rows else []
    if rows and _fact_written(statement, values) < len(rows):
        raise ValueError("it rests on words that are in no drawer")


def _words(fact: UUID, each: Fields) -> Iterator[Row]:
    for words in each.records("evidence"):
        yield fact, *words.message(), words.count("start"), words.count("end")


def put_fact_events(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    columns = (
        *("palace_id", "uuid", "memory", "event", "old_text", "new_text"),
        *("why", "by", "agent", "run", "at"),
    )
    rows = (
        (
            *(placed.palace.pk, placed.id_of(each), placed.id_of(each, "memory")),
            each.one_of("event", FactEvent.Kind.values),
            *(each.text_or_none("old_text"), each.text_or_none("new_text"), each.text("why")),
            *(each.text("by"), each.text("agent"), each.text("run"), each.time("at")),
        )
        for each in _new(placed, FactEvent, records)
    )
    insert_rows(FactEvent, columns, rows)


def put_episodes(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    columns = (
        *("palace_id", "uuid", "source", "conversation", "agent", "summary"),
        *("key_decisions", "entities", "tools", "made_by", "model", "input_hash", "messages"),
        *("started_at", "ended_at", "created_at", "updated_at", "trashed_at"),
    )
    rows = (
        (
            *(placed.palace.pk, placed.id_of(each), each.text("source")),
            *(each.text("conversation"), each.text("agent"), each.text("summary")),
            *(as_json(each.items(name)) for name in ("key_decisions", "entities", "tools")),
            *(each.one_of("made_by", Episode.Maker.values), each.text("model")),
            *(each.text("input_hash"), each.count_or_none("messages")),
            *(each.time_or_none("started_at"), each.time_or_none("ended_at")),
            *(each.time("created_at"), each.time("updated_at"), each.time_or_none("trashed_at")),
        )
        for each in records
    )
    insert_rows(Episode, columns, rows)


def put_activities(placed: RestoredKeys, records: Sequence[Fields]) -> None:
    rows = (
        (
            *(placed.palace.pk, placed.id_of(each)),
            each.one_of("kind", Activity.Kind.values),
            *(each.text("summary"), as_json(each.mapping("detail")), each.time("created_at")),
        )
        for each in _new(placed, Activity, records)
    )
    columns = ("palace_id", "uuid", "kind", "summary", "detail", "created_at")
    insert_rows(Activity, columns, rows)


def _new(placed: RestoredKeys, kind: Any, records: Sequence[Fields]) -> list[Fields]:
    """The records that the emptied palace does not have yet: its log is never deleted."""
    kept = present(kind, placed.palace, [placed.id_of(each) for each in records])
    return [each for each in records if placed.id_of(each) not in kept]


def _fact_written(statement: str, values: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
