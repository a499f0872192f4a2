"""Store summaries that callers write themselves, and find episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from language.storable import is_storable, normalize_query, storable_id
from llm.embedding import embed
from palace.errors import BadInput, EmptyQuery
from palace.models import Drawer, DrawerQuerySet, Episode, EpisodeQuerySet, Palace
from palace.storage import check_quota
from palace.storage.indexing.episode_vectors import embed_texts, nearest, replace
from palace.storage.indexing.spaces import active_space, model_of

FOUND = 10
MOST_SUMMARY_CHARS = 10_000
MOST_LISTED = 200
MOST_LISTED_CHARS = 50_000


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
