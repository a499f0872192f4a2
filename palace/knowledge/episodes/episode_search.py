"""Finding episodes: by meaning, and by their conversation."""

from __future__ import annotations

from datetime import datetime

from language.storable import storable_id
from llm.embedding import embed
from palace.errors import EmptyQuery
from palace.models import Episode, Palace
from palace.recall.query import normalize_query
from palace.storage.indexing.episode_vectors import nearest
from palace.storage.indexing.spaces import active_space, model_of

FOUND = 10


def search(
    palace: Palace,
    query: str,
    *,
    agent: str = "",
    k: int = FOUND,
    as_of: datetime | None = None,
) -> list[tuple[Episode, float]]:
    """The episodes of a palace closest to a question, best first, each with its cosine.

    Of those whose words are in the trash none is found.

    Args:
        agent: Only those of this agent; empty: of all.
        as_of: Only those of conversations that had begun then.

    Raises:
        EmptyQuery: the question is blank.
        LLMError: it cannot be embedded.
    """
    asked = normalize_query(query)
    if not asked:
        raise EmptyQuery
    among = Episode.objects.within(palace).kept().of_agent(storable_id(agent))
    if as_of is not None:
        among = among.begun_by(as_of)
    space = active_space()
    [vector] = embed([asked], model_of(space), owner_id=palace.owner_id, cache=False)
    return nearest(palace, space, vector, among, limit=k)


def of_conversation(palace: Palace, conversation: str, *, source: str = "") -> list[Episode]:
    """The episodes of a conversation, the oldest first: what mining wrote, what callers stored.

    Args:
        source: Of what mining wrote, only that of the conversation there; empty: of any.
    """
    kept = Episode.objects.within(palace).kept()
    found = kept.filter(conversation=storable_id(conversation))
    if source:
        found = found.filter(source__in=[source, ""])
    return list(found.in_order())
