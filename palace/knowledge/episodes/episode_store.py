"""Store summaries that callers write themselves, find episodes, and move them with their messages.

A derived episode may quote any message of its conversation: it goes to the trash when one of the
messages does, and is written again from the rest. A stored episode goes to the trash when no
message of its conversation is left. In the functions that do so the caller locks the palace.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from language.errors import BadInput, EmptyQuery
from language.storable import is_storable, normalize_query, storable_id
from llm.embedding import embed
from palace.knowledge.episodes.episode_drawers import Key, Material, Summary
from palace.models import (
    Drawer,
    DrawerQuerySet,
    EmbeddingSpace,
    Episode,
    EpisodeQuerySet,
    Palace,
    Room,
)
from palace.storage import check_quota
from palace.storage.indexing.episode_vectors import embed_texts, forget_texts, nearest, replace
from palace.storage.indexing.fact_vectors import Vector
from palace.storage.indexing.spaces import active_space, model_of

FOUND = 10
MOST_SUMMARY_CHARS = 10_000
MOST_LISTED = 200
MOST_LISTED_CHARS = 50_000
_WRITTEN = [
    "agent",
    "summary",
    "key_decisions",
    "entities",
    "tools",
    "made_by",
    "model",
    "input_hash",
    "messages",
    "started_at",
    "ended_at",
    "updated_at",
    "trashed_at",
]


def store_episode(
    palace: Palace,
    *,
    conversation: str,
    summary: str,
    key_decisions: Sequence[Any] = (),
    entities: Sequence[Any] = (),
    tools: Sequence[Any] = (),
    agent: str = "",
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
) -> Episode:
    """Store a summary as a new episode; repeated calls store it again.

    If it cannot be embedded now, search finds it once it has a vector.
    Call it outside of a transaction.

    Args:
        conversation: The conversation's id; the episode goes to the trash with the last message
            of it, if there are any.
        key_decisions, entities, tools: Texts, or other JSON values.

    Raises:
        BadInput: an argument cannot be stored; says which.
        QuotaExceeded: it does not fit in the palace.
    """
    text = _text("summary", summary, MOST_SUMMARY_CHARS)
    given = {"key_decisions": key_decisions, "entities": entities, "tools": tools}
    lists = {name: _listed(name, values) for name, values in given.items()}
    if started_at and ended_at and ended_at < started_at:
        raise BadInput("ended_at is before started_at; a conversation ends after it begins.")
    named = storable_id(_text("conversation", conversation, MOST_SUMMARY_CHARS))
    space, now = active_space(), timezone.now()
    [vector] = embed_texts(palace, space, [text])
    with transaction.atomic():
        palace.lock()
        check_quota(palace, [text + "".join(map(_as_json, lists.values()))])
        episode = Episode.objects.create(
            palace=palace,
            conversation=named,
            agent=storable_id(agent),
            summary=text,
            **lists,
            made_by=Episode.Maker.CALLER,
            started_at=started_at,
            ended_at=ended_at,
            created_at=now,
            updated_at=now,
        )
        replace(palace, space, {episode.pk: vector})
    return episode


def _text(name: str, value: object, most: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{name} is text that is not blank; give one.")
    if len(value) > most or not is_storable(value):
        raise BadInput(
            f"{name} has up to {most:,} characters, and none that cannot be stored (NUL or a lone "
            "surrogate)."
        )
    return value


def _listed(name: str, values: object) -> list[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise BadInput(f"{name} is a list; put what you have into one.")
    try:
        written = _as_json(list(values))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{name} cannot be written as JSON: {error}.") from None
    if (
        len(values) > MOST_LISTED
        or len(written) > MOST_LISTED_CHARS
        or "\\u0000" in written
        or not is_storable(written)
    ):
        raise BadInput(
            f"{name} has up to {MOST_LISTED} entries and {MOST_LISTED_CHARS:,} characters as JSON, "
            "and none that cannot be stored (NUL or a lone surrogate)."
        )
    kept: list[Any] = json.loads(written)
    return kept


def _as_json(values: list[Any]) -> str:
    return json.dumps(values, allow_nan=False, ensure_ascii=False)


def search_episodes(
    palace: Palace,
    query: str,
    *,
    agent: str = "",
    k: int = FOUND,
    as_of: datetime | None = None,
) -> list[tuple[Episode, float]]:
    """`search_episodes_of` one palace."""
    return search_episodes_of([palace], query, agent=agent, k=k, as_of=as_of)


def search_episodes_of(
    palaces: Sequence[Palace],
    query: str,
    *,
    agent: str = "",
    k: int = FOUND,
    as_of: datetime | None = None,
) -> list[tuple[Episode, float]]:
    """Search the episodes of an owner's palaces by meaning, best first, each with its cosine.

    Episodes in the trash are not found.

    Args:
        agent: Only episodes of this agent; empty: of all. A summary that may quote messages which
            only another agent may find is left out.
        as_of: Only conversations that had begun by then.

    Raises:
        EmptyQuery: the question is blank.
        LLMError: it cannot be embedded.
    """
    asked = normalize_query(query)
    if not asked:
        raise EmptyQuery
    if not palaces:
        return []
    among = _of_agent(palaces, agent)
    if as_of is not None:
        among = among.begun_by(as_of)
    space = active_space()
    [vector] = embed([asked], model_of(space), owner_id=palaces[0].owner_id, is_question=True)
    return nearest(palaces, space, vector, among, limit=k)


def latest_episodes(
    palaces: Sequence[Palace], *, agent: str = "", limit: int = FOUND
) -> list[Episode]:
    """The last that were written, newest first; see `search_episodes_of`."""
    found = _of_agent(palaces, agent).select_related("palace")
    return list(found.order_by("-created_at", "-pk")[:limit])


def _of_agent(palaces: Sequence[Palace], agent: str) -> EpisodeQuerySet:
    """Episodes outside the trash; with an agent only its own, which quote no other agent's."""
    named, kept = storable_id(agent), Episode.objects.filter(palace__in=palaces).kept()
    return kept.of_agent(named).exclude(Exists(_of_other_agents(named))) if named else kept


def _of_other_agents(agent: str) -> DrawerQuerySet:
    """Drawers of the episode's conversation that only another agent may find."""
    return Drawer.objects.of_other_agents(agent).filter(
        palace=OuterRef("palace"), source=OuterRef("source"), conversation=OuterRef("conversation")
    )


def episodes_of_conversation(
    palace: Palace, conversation: str, *, source: str = ""
) -> list[Episode]:
    """All episodes of a conversation, derived and stored, oldest first.

    Args:
        source: Derived episodes only from this source; empty: from any.
    """
    kept = Episode.objects.within(palace).kept()
    found = kept.filter(conversation=storable_id(conversation))
    if source:
        found = found.filter(source__in=[source, ""])
    return list(found.in_order())


@dataclass(frozen=True, slots=True)
class Made:
    """
    Attributes:
        input_hash: Hash of its material.
        summary: None if the stored one is up to date.
        vector: None if the summary could not be embedded, or is None.
    """

    key: Key
    material: Material
    input_hash: str
    summary: Summary | None = None
    vector: Vector | None = None


def derived(palace: Palace, keys: Collection[Key]) -> dict[Key, Episode]:
    """The derived episodes of these conversations."""
    rows = Episode.objects.within(palace).derived()
    found = rows.filter(
        source__in={source for source, _ in keys},
        conversation__in={conversation for _, conversation in keys},
    )
    by_key = {(episode.source, episode.conversation): episode for episode in found}
    return {key: by_key[key] for key in keys if key in by_key}


def store_derived(palace: Palace, space: EmbeddingSpace, made: Sequence[Made]) -> None:
    """Store episodes, replacing previous versions."""
    there, now = derived(palace, [one.key for one in made]), timezone.now()
    same = [there[one.key].pk for one in made if one.summary is None and one.key in there]
    if same:
        Episode.objects.within(palace).filter(pk__in=same).update(trashed_at=None, updated_at=now)
    new = [(one, one.summary) for one in made if one.summary is not None]
    said_before = {there[one.key].summary for one, _ in new if one.key in there}
    rows = {one.key: _written(palace, there.get(one.key), one, text, now) for one, text in new}
    if not rows:
        return
    Episode.objects.bulk_create([row for key, row in rows.items() if key not in there])
    replaced = [row for key, row in rows.items() if key in there]
    Episode.objects.within(palace).bulk_update(replaced, _WRITTEN)
    replace(palace, space, {rows[one.key].pk: one.vector for one, _ in new})
    forget_texts(said_before - {row.summary for row in rows.values()})


def _written(
    palace: Palace, there: Episode | None, made: Made, summary: Summary, now: datetime
) -> Episode:
    source, conversation = made.key
    row = there or Episode(palace=palace, source=source, conversation=conversation, created_at=now)
    row.agent = made.material.agent
    row.summary = summary.text
    row.key_decisions = list(summary.decisions)
    row.entities = list(summary.entities)
    row.tools = list(summary.tools)
    row.made_by, row.model = summary.made_by, summary.model
    row.input_hash = made.input_hash
    row.messages = made.material.messages
    row.started_at, row.ended_at = made.material.started_at, made.material.ended_at
    row.updated_at, row.trashed_at = now, None
    return row


def trash_covered(palace: Palace, keys: Iterable[Key]) -> None:
    """Trash the episodes of conversations whose messages are all in the trash."""
    rows = [episode.pk for episode in derived(palace, list(keys)).values()]
    if rows:
        covered = Episode.objects.within(palace).kept().filter(pk__in=rows)
        covered.update(trashed_at=timezone.now())


def trash_episodes(palace: Palace, at: datetime) -> None:
    """Trash the episodes of drawers that went to the trash at this moment."""
    gone = Drawer.objects.within(palace).filter(trashed_at=at)
    _write_again(palace, gone)
    kept = Episode.objects.within(palace).kept()
    of_conversation = gone.filter(source=OuterRef("source"), conversation=OuterRef("conversation"))
    kept.derived().filter(Exists(of_conversation)).update(trashed_at=at)
    stored = kept.stored().filter(conversation__in=gone.values("conversation"))
    stored.exclude(Exists(_of_conversation(palace).kept())).update(trashed_at=at)


def restore_episodes(palace: Palace, drawers: Collection[int]) -> None:
    """Restore stored episodes of drawers, given by key, that returned from the trash.

    Derived episodes are marked as due, and written again.
    """
    back = Drawer.objects.within(palace).filter(pk__in=drawers)
    _write_again(palace, back)
    stored = Episode.objects.within(palace).stored().exclude(trashed_at=None)
    of_these = stored.filter(conversation__in=back.values("conversation"))
    of_these.filter(Exists(_of_conversation(palace).kept())).update(trashed_at=None)


def delete_episodes_of(palace: Palace, purged: Sequence[Drawer]) -> None:
    """Delete the episodes that may quote these drawers, which were just deleted."""
    gone_at: dict[Key, datetime] = {}
    for drawer in purged:
        if drawer.trashed_at is not None:
            key = (drawer.source, drawer.conversation)
            gone_at[key] = max(gone_at.get(key, drawer.trashed_at), drawer.trashed_at)
    doomed = [
        episode
        for key, episode in derived(palace, list(gone_at)).items()
        # An episode written since then does not quote them, and stays.
        if episode.trashed_at is not None or episode.updated_at <= gone_at[key]
    ]
    stored = Episode.objects.within(palace).stored()
    named = stored.filter(conversation__in={conversation for _, conversation in gone_at})
    doomed += named.exclude(Exists(_of_conversation(palace)))
    if doomed:
        rooms = (
            Drawer.objects.within(palace)
            .kept()
            .filter(
                source__in={episode.source for episode in doomed},
                conversation__in={episode.conversation for episode in doomed},
            )
        )
        _write_again(palace, rooms)
        Episode.objects.within(palace).filter(pk__in=[episode.pk for episode in doomed]).delete()
        forget_texts([episode.summary for episode in doomed])


def delete_stored_episodes(palace: Palace, conversation: str) -> int:
    """Delete the stored episodes of a conversation that has no drawer; returns how many."""
    named = Episode.objects.within(palace).stored().filter(conversation=conversation)
    doomed = list(named.exclude(Exists(_of_conversation(palace))))
    Episode.objects.within(palace).filter(pk__in=[episode.pk for episode in doomed]).delete()
    forget_texts([episode.summary for episode in doomed])
    return len(doomed)


def _write_again(palace: Palace, drawers: DrawerQuerySet) -> None:
    keys = list(drawers.order_by().values_list("room_id", flat=True).distinct())
    Room.objects.within(palace).filter(pk__in=keys).mark_episode_due()


def _of_conversation(palace: Palace) -> DrawerQuerySet:
    """Drawers of a conversation by its id, from any source."""
    return Drawer.objects.within(palace).filter(conversation=OuterRef("conversation"))
