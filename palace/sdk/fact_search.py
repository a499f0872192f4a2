"""Finding memories: the closest by meaning, and those around whom the question names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.db.models import Q

from language.slugs import slug_of
from llm.embedding import embed
from palace.errors import EmptyQuery
from palace.models import Entity, Fact, Palace
from palace.models.facts import FactQuerySet, about_any
from palace.recall.query import as_asked
from palace.storage.indexing.fact_vectors import nearest
from palace.storage.indexing.spaces import active_space, model_of

# Of the places in an answer, so many go to the closest of what is connected to those it names.
SHARE_OF_CONNECTED = 3
_MOST_WORDS = 60
_LONGEST_NAME = 4
_WORD = re.compile(r"\w[\w&.-]*")
_POSSESSIVE = re.compile(r"['’]s\b")

Found = list[tuple[Fact, float]]


def find(palace: Palace, query: str, facts: FactQuerySet, wanted: Q, *, limit: int) -> Found:
    """The closest of `facts` that are `wanted`, best first, each with its cosine.

    Where the question names somebody or something, the last third of the places goes to memories
    of them, and of those they are connected to by one of `facts`, the closest of them first.

    Raises:
        EmptyQuery: the question is blank.
        LLMError: it cannot be embedded.
    """
    asked = as_asked(query)
    if not asked:
        raise EmptyQuery
    space = active_space()
    [vector] = embed([asked], model_of(space), owner_id=palace.owner_id, cache=False)
    found = nearest(palace, space, vector, facts.filter(wanted), limit=limit)
    places = limit // SHARE_OF_CONNECTED
    if len(found) < limit or not places:
        return found
    closest, others = found[:-places], found[-places:]
    entities = connected(facts, named_in(palace, asked))
    if not entities:
        return found
    among = facts.filter(wanted, about_any(entities)).exclude(
        pk__in=[fact.pk for fact, _ in closest]
    )
    around = nearest(palace, space, vector, among, limit=places)
    return _merged(closest, around, others)


def _merged(closest: Found, around: Found, others: Found) -> Found:
    """All of the first two, and as many of the others as leave it at the same length."""
    kept = {fact.pk for fact, _ in around}
    filling = [pair for pair in others if pair[0].pk not in kept]
    pairs = [*closest, *around, *filling[: len(others) - len(around)]]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].pk))


def named_in(palace: Palace, text: str) -> set[int]:
    """Keys of the entities whose name, or another name of theirs, stands in the text."""
    names = set(_runs(_WORD.findall(_POSSESSIVE.sub("", text))[:_MOST_WORDS]))
    # All kinds, as the index begins with the kind.
    entities = Entity.objects.filter(palace=palace, kind__in=Entity.Kind.values)
    named = Q(slug__in={slug_of(name) for name in names}) | Q(aliases__overlap=list(names))
    return set(entities.filter(named).values_list("pk", flat=True)) if names else set()


def _runs(words: list[str]) -> Iterator[str]:
    """All that can be a name of up to four words."""
    words = [word.rstrip(".-") for word in words]
    for start in range(len(words)):
        for length in range(1, _LONGEST_NAME + 1):
            yield " ".join(words[start : start + length])


def connected(facts: FactQuerySet, named: set[int]) -> set[int]:
    """These entities, and those at the other end of a fact about them."""
    if not named:
        return set()
    edges = facts.exclude(object_entity=None).filter(about_any(named))
    ends = edges.order_by().values_list("subject_id", "object_entity_id").distinct()
    return named | {key for pair in ends for key in pair}
