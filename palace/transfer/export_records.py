"""A palace's records as JSON objects, one a line, in a stable order.

References use public ids: wings and rooms by number, a closet by its
slug, a message by its source, conversation and id, an entity by its kind and slug.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Prefetch

from palace.models import (
    Activity,
    Closet,
    Drawer,
    Entity,
    Episode,
    Evidence,
    Fact,
    FactEvent,
    Mention,
    Palace,
    Room,
    Telling,
    Wing,
    WingAlias,
)
from settings_app.models import settings_of

Record = dict[str, Any]

# Rows in memory at once; messages can be long.
CHUNK = 500
LONG_CHUNK = 50
# The other settings fields are the key, the owner and the time of change.
SETTINGS = (
    "enabled",
    "top_k",
    "recipe",
    "use_rerank",
    "rerank_model",
    "auto_mine",
    "dreams",
    "dream_preferences",
    "dream_limit_usd",
    "dream_limit_tokens",
    "dream_trusted",
    "provider",
    "model",
    "time_zone",
)


def palace_record(palace: Palace) -> Record:
    """The highest numbers ever assigned, so that those of purged rows are not reused."""
    palace = Palace.objects.get(pk=palace.pk)  # As of this transaction's snapshot.
    return {
        "id": str(palace.uuid),
        "subject": palace.subject,
        "highest_wing": palace.highest_wing,
        "highest_room": palace.highest_room,
        "rejected_areas": palace.rejected_areas,
        "created_at": _time(palace.created_at),
    }


def settings_record(palace: Palace) -> Record:
    chosen = settings_of(palace.owner_id)
    values = {name: getattr(chosen, name) for name in SETTINGS}
    return {**values, "dream_limit_usd": str(values["dream_limit_usd"])}


def wings(palace: Palace) -> Iterator[Record]:
    aliases = WingAlias.objects.filter(palace=palace, wing=OuterRef("pk")).order_by("slug")
    rows = Wing.objects.within(palace).annotate(other_names=ArraySubquery(aliases.values("slug")))
    for wing in rows.order_by("number").iterator(CHUNK):
        yield {
            "id": str(wing.uuid),
            "number": wing.number,
            "slug": wing.slug,
            "name": wing.name,
            "kind": wing.kind,
            "aliases": wing.other_names,
            "kept_months": wing.kept_months,
            "never": wing.never,
            "created_at": _time(wing.created_at),
        }


def rooms(palace: Palace) -> Iterator[Record]:
    rows = Room.objects.within(palace).select_related("wing").order_by("number")
    for room in rows.iterator(CHUNK):
        yield {
            "id": str(room.uuid),
            "number": room.number,
            "wing": room.wing.number,
            "source": room.source,
            "conversation": room.external_id,
            "agent": room.agent,
            "title": room.title,
            "area": room.area,
            "settled": room.is_settled,
            "started_at": _time(room.started_at),
            "ended_at": _time(room.ended_at),
            "highest_drawer": room.highest_drawer,
            "created_at": _time(room.created_at),
            "episode_due_at": _time(room.episode_due_at),
            "reviewed_at": _time(room.reviewed_at),
            "recalled_at": _time(room.recalled_at),
        }


def closets(palace: Palace) -> Iterator[Record]:
    rows = Closet.objects.within(palace).select_related("room").order_by("room__number", "pk")
    for closet in rows.iterator(CHUNK):
        yield {
            "id": str(closet.uuid),
            "room": closet.room.number,
            "slug": closet.slug,
            "title": closet.title,
            "created_at": _time(closet.created_at),
        }


def drawers(palace: Palace) -> Iterator[Record]:
    """All drawers, also those in the trash, which have `trashed_at`."""
    rows = Drawer.objects.within(palace).with_place().order_by("room__number", "number")
    in_order = rows.iterator(LONG_CHUNK)
    while batch := list(islice(in_order, LONG_CHUNK)):
        # Not prefetched: that creates reference cycles, which stay in memory until collected.
        keys = [drawer.pk for drawer in batch]
        mentions, ingestions = _mentions(palace, keys), _ingestions(palace, keys)
        for drawer in batch:
            yield {**_drawer(drawer, mentions[drawer.pk]), **ingestions.get(drawer.pk, {})}


def _mentions(palace: Palace, drawers: list[int]) -> defaultdict[int, list[Record]]:
    rows = Mention.objects.filter(palace=palace, drawer__in=drawers).select_related("entity")
    found: defaultdict[int, list[Record]] = defaultdict(list)
    for each in rows.order_by("start", "entity__kind", "entity__slug"):
        entity = _entity_key(each.entity)
        found[each.drawer_id].append({"entity": entity, "start": each.start, "end": each.end})
    return found


def _ingestions(palace: Palace, drawers: list[int]) -> dict[int, Record]:
    """The ingestion options of drawers that wait for extraction."""
    rows = Telling.objects.filter(palace=palace, drawer__in=drawers)
    return {each.drawer_id: {"telling": _ingestion(each)} for each in rows}


def _ingestion(ingestion: Telling) -> Record:
    return {
        "by": ingestion.by,
        "agent": ingestion.agent,
        "run": ingestion.run,
        "metadata": ingestion.metadata,
        "prompt": ingestion.prompt,
        "judging_prompt": ingestion.judging_prompt,
        "filters": ingestion.filters,
    }


def _drawer(drawer: Drawer, mentions: list[Record]) -> Record:
    return {
        "id": str(drawer.uuid),
        "pointer": str(drawer.pointer),
        "room": drawer.room.number,
        "number": drawer.number,
        "closet": drawer.closet.slug if drawer.closet else None,
        "source": drawer.source,
        "conversation": drawer.conversation,
        "message": drawer.external_id,
        "position": drawer.position,
        "role": drawer.role,
        "speaker": drawer.speaker,
        "agent": drawer.agent,
        "text": drawer.text,
        "said_at": _time(drawer.said_at),
        "metadata": drawer.metadata,
        "tags": drawer.tags,
        "preference": drawer.preference,
        "mentions": mentions,
        "filed_at": _time(drawer.filed_at),
        "mined": drawer.mined_at is not None,
        "read_for_facts": drawer.facts_read_at is not None,
        "trashed_at": _time(drawer.trashed_at),
    }


def entities(palace: Palace) -> Iterator[Record]:
    """Oldest first: a shared name refers to the oldest."""
    for entity in Entity.objects.filter(palace=palace).order_by("pk").iterator(CHUNK):
        yield {
            "id": str(entity.uuid),
            "kind": entity.kind,
            "slug": entity.slug,
            "name": entity.name,
            "aliases": entity.aliases,
            "created_at": _time(entity.created_at),
        }


def facts(palace: Palace) -> Iterator[Record]:
    """All versions of all memories, in the order they were written, superseded ones first.

    A row may supersede one that was written later: what was so before is sometimes learnt after.
    """
    evidence = Evidence.objects.filter(palace=palace).select_related("drawer")
    in_order = evidence.order_by(
        "drawer__source", "drawer__conversation", "drawer__external_id", "start"
    )
    rows = Fact.objects.within(palace).select_related("subject", "object_entity", "supersedes")
    rows = rows.prefetch_related(Prefetch("evidence", in_order))
    ordered = iter(_superseded_first(palace))
    while keys := list(islice(ordered, CHUNK)):
        found = rows.in_bulk(keys)
        for fact in (found[key] for key in keys if key in found):
            yield {**_statement(fact), **_clocks(fact), "evidence": _words(fact)}


def _superseded_first(palace: Palace) -> Iterable[int]:
    """The keys of all facts; each comes after the one that it supersedes."""
    facts = Fact.objects.within(palace).order_by("pk")
    before = dict(facts.values_list("pk", "supersedes_id"))
    ordered: dict[int, None] = {}
    for key in before:
        path: dict[int, None] = {}
        at: int | None = key
        while at is not None and at in before and at not in ordered and at not in path:
            path[at] = None
            at = before[at]
        ordered |= dict.fromkeys(reversed(path))
    return ordered


def _statement(fact: Fact) -> Record:
    other = fact.object_entity
    return {
        "id": str(fact.uuid),
        "memory": str(fact.memory),
        "type": fact.type,
        "subject": _entity_key(fact.subject),
        "predicate": fact.predicate,
        "object": fact.object,
        "object_entity": _entity_key(other) if other else None,
        "aspect": fact.aspect,
        "stance": fact.stance,
        "text": fact.text,
        "confidence": fact.confidence,
        "category": fact.category,
        "tags": fact.tags,
        "metadata": fact.metadata,
        "agent": fact.agent,
        "run": fact.run,
        "single": fact.single,
    }


def _clocks(fact: Fact) -> Record:
    return {
        "valid_from": _time(fact.valid_from),
        "valid_to": _time(fact.valid_to),
        "recorded_at": _time(fact.recorded_at),
        "retired_at": _time(fact.retired_at),
        "fate": fact.fate,
        "supersedes": str(fact.supersedes.uuid) if fact.supersedes else None,
    }


def _words(fact: Fact) -> list[Record]:
    return [
        {
            "source": each.drawer.source,
            "conversation": each.drawer.conversation,
            "message": each.drawer.external_id,
            "start": each.start,
            "end": each.end,
        }
        for each in fact.evidence.all()
    ]


def fact_events(palace: Palace) -> Iterator[Record]:
    """The history of all memories, oldest first."""
    for event in FactEvent.objects.filter(palace=palace).order_by("at", "pk").iterator(CHUNK):
        yield {
            "id": str(event.uuid),
            "memory": str(event.memory),
            "event": event.event,
            "old_text": event.old_text,
            "new_text": event.new_text,
            "why": event.why,
            "by": event.by,
            "agent": event.agent,
            "run": event.run,
            "at": _time(event.at),
        }


def episodes(palace: Palace) -> Iterator[Record]:
    for episode in Episode.objects.within(palace).order_by("pk").iterator(CHUNK):
        yield {
            "id": str(episode.uuid),
            "source": episode.source,
            "conversation": episode.conversation,
            "agent": episode.agent,
            "summary": episode.summary,
            "key_decisions": episode.key_decisions,
            "entities": episode.entities,
            "tools": episode.tools,
            "made_by": episode.made_by,
            "model": episode.model,
            "input_hash": episode.input_hash,
            "messages": episode.messages,
            "started_at": _time(episode.started_at),
            "ended_at": _time(episode.ended_at),
            "created_at": _time(episode.created_at),
            "updated_at": _time(episode.updated_at),
            "trashed_at": _time(episode.trashed_at),
        }


def activities(palace: Palace) -> Iterator[Record]:
    """Without the data for undoing merges and splits, which refers to rows of this database."""
    rows = Activity.objects.filter(palace=palace).order_by("created_at", "pk")
    for activity in rows.iterator(CHUNK):
        yield {
            "id": str(activity.uuid),
            "kind": activity.kind,
            "summary": activity.summary,
            "detail": {name: of for name, of in activity.detail.items() if name != "undo"},
            "created_at": _time(activity.created_at),
        }


def _entity_key(entity: Entity) -> Record:
    return {"kind": entity.kind, "slug": entity.slug}


def _time(moment: datetime | None) -> str | None:
    """ISO 8601, in UTC."""
    return moment.astimezone(UTC).isoformat() if moment else None
