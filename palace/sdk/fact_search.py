"""Search facts: those closest in meaning, and those about entities that the question names."""

from __future__ import annotations

from django.db.models import Q

from llm.embedding import embed
from palace.errors import EmptyQuery
from palace.models import Fact, Palace
from palace.models.facts import FactQuerySet, about_any
from palace.recall.graph import named_entities, walk
from palace.recall.query import normalize_query
from palace.storage.indexing.fact_vectors import nearest
from palace.storage.indexing.spaces import active_space, model_of

# One result in this many goes to facts about the named entities and their direct neighbours.
SHARE_OF_CONNECTED = 3

ScoredFacts = list[tuple[Fact, float]]


def search_facts(
    palace: Palace, query: str, facts: FactQuerySet, wanted: Q, *, limit: int
) -> ScoredFacts:
    """Those of `facts` that match `wanted` and are closest to the query, best first, with cosines.

    When the query names entities, the last third of the results goes to facts about them and
    their direct neighbours in the graph of `facts`, closest first.

    Raises:
        EmptyQuery: the query is blank.
        LLMError: it cannot be embedded.
    """
    question = normalize_query(query)
    if not question:
        raise EmptyQuery
    space = active_space()
    [vector] = embed([question], model_of(space), owner_id=palace.owner_id, cache=False)
    found = nearest(palace, space, vector, facts.filter(wanted), limit=limit)
    reserved = limit // SHARE_OF_CONNECTED
    if len(found) < limit or not reserved:
        return found
    named = named_entities(palace, question)
    if not named:
        return found
    closest, others = found[:-reserved], found[-reserved:]
    entities = walk(facts, named, hops=1).hops.keys()
    about_them = facts.filter(wanted, about_any(entities)).exclude(
        pk__in=[fact.pk for fact, _ in closest]
    )
    connected = nearest(palace, space, vector, about_them, limit=reserved)
    return _merge(closest, connected, others)


def _merge(closest: ScoredFacts, connected: ScoredFacts, others: ScoredFacts) -> ScoredFacts:
    """All of the first two lists, and enough of `others` to keep the original length."""
    present = {fact.pk for fact, _ in connected}
    rest = [pair for pair in others if pair[0].pk not in present]
    pairs = [*closest, *connected, *rest[: len(others) - len(connected)]]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].pk))
