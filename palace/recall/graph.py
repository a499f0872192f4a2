"""Graph: over facts from one entity to the next."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F, Q

from language.analyzer import analyze
from language.slugs import slug_of
from palace.models import Entity, Fact, Palace
from palace.models.facts import FactQuerySet, about_any
from palace.recall.raw_sql import fetch_rows

# The memory service's multi-hop expansion: hop n from a seed gets the seed's score times 0.6^n.
HOPS = 3
DECAY = 0.6
# Of the facts around entities that much is said of, the newest are followed.
MOST_EDGES = 1000
# Names of more words are not looked for in a question.
NAME_WORDS = 5

# What somebody is called who speaks of themselves: "user" in a question is no name.
_NOBODY = "user"
_WORD = re.compile(r"(?:(?<![\w.])\.)?\w+(?:[.&'’\-]\w+)*[+#]*")
_POSSESSIVE = re.compile(r"['’]s?$")
_NAMED = """
    SELECT id, slug, '' FROM palace_entity
    WHERE palace_id = %s AND kind = ANY(%s) AND slug = ANY(%s)
    UNION ALL
    SELECT id, '', lower(alias) FROM palace_entity CROSS JOIN unnest(aliases) AS alias
    WHERE palace_id = %s AND aliases <> '{}' AND lower(alias) = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact between two entities, all by their keys; it is followed both ways."""

    fact: int
    subject: int
    object: int


@dataclass(frozen=True, slots=True)
class Expanded:
    """Scores of entities and facts by their keys, from 0 to the highest seed's times 0.6."""

    entities: Mapping[int, float]
    facts: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Walk:
    """
    Attributes:
        hops: By entity, over how many edges it is reached at least; 0 of those it began at.
    """

    edges: Collection[Edge]
    hops: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity and over how many facts, at least, it is reached; 1 where one fact has both."""

    entity: Entity
    hops: int


def expand(seeds: Mapping[int, float], edges: Iterable[Edge], *, hops: int = HOPS) -> Expanded:
    """What seeds lead to; the best of them counts where several lead to the same. Pure.

    An entity n edges away gets the seed's score times `DECAY` to the power of n, and so does the
    edge that leads there. Seeds themselves are never among the entities.
    """
    beside: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for edge in edges:
        beside[edge.subject].append((edge.fact, edge.object))
        beside[edge.object].append((edge.fact, edge.subject))
    entities: dict[int, float] = {}
    facts: dict[int, float] = {}
    # The seed's own score is carried along, so that decay depends on the number of hops alone.
    carried = dict(seeds)
    for hop in range(1, hops + 1):
        arriving: dict[int, float] = {}
        for entity, seed in carried.items():
            score = seed * DECAY**hop
            for fact, reached in beside[entity]:
                facts[fact] = max(facts.get(fact, 0.0), score)
                arriving[reached] = max(arriving.get(reached, 0.0), seed)
                if reached not in seeds:
                    entities[reached] = max(entities.get(reached, 0.0), score)
        carried = arriving
    return Expanded(entities, facts)


def walk(facts: FactQuerySet, entities: Collection[int], *, hops: int = HOPS) -> Walk:
    """The edges up to `hops` away from entities, by one query a hop.

    Args:
        facts: Of one palace: which may be followed.
    """
    edges: dict[int, Edge] = {}
    reached = dict.fromkeys(entities, 0)
    outermost = set(entities)
    for hop in range(1, hops + 1):
        if not outermost:
            break
        found = [Edge(*row) for row in _edges(facts, outermost)]
        edges |= {edge.fact: edge for edge in found}
        ends = {key for edge in found for key in (edge.subject, edge.object)}
        outermost = ends - reached.keys()
        reached |= dict.fromkeys(outermost, hop)
    return Walk(edges.values(), reached)


def _edges(facts: FactQuerySet, entities: Collection[int]) -> Iterable[tuple[int, int, int]]:
    edges = facts.filter(about_any(entities), object_entity__isnull=False)
    rows = edges.exclude(subject=F("object_entity")).order_by("-recorded_at", "-pk")
    return rows.values_list("pk", "subject_id", "object_entity_id")[:MOST_EDGES]


def relations(
    palace: Palace,
    entity: Entity,
    *,
    true_at: datetime | None = None,
    known_at: datetime | None = None,
) -> list[Fact]:
    """The edges at an entity, with both ends at hand, by when they came true.

    Args:
        true_at: Those that held then; those held now unless a moment of either clock is given.
        known_at: As we knew it then.
    """
    edges = (
        Fact.objects.within(palace)
        .as_of(true_at=true_at, known_at=known_at)
        .filter(Q(subject=entity) | Q(object_entity=entity), object_entity__isnull=False)
    )
    return list(edges.select_related("subject", "object_entity").in_order())


def neighbours(
    palace: Palace,
    entities: Collection[Entity],
    *,
    hops: int = 1,
    true_at: datetime | None = None,
    known_at: datetime | None = None,
) -> list[Neighbour]:
    """Whoever and whatever facts lead to from these entities, nearest first, then by name.

    Args:
        hops: Over how many facts, from 1 to 3; more are not followed.
        true_at: As `relations` has it; likewise `known_at`.
    """
    own = Entity.objects.filter(palace=palace, pk__in=[entity.pk for entity in entities])
    facts = Fact.objects.within(palace).as_of(true_at=true_at, known_at=known_at)
    reached = walk(facts, set(own.values_list("pk", flat=True)), hops=min(hops, HOPS)).hops
    others = Entity.objects.filter(palace=palace).in_bulk([key for key in reached if reached[key]])
    found = [Neighbour(entity, reached[key]) for key, entity in others.items()]
    return sorted(found, key=lambda one: (one.hops, one.entity.name, one.entity.pk))


def named_entities(palace: Palace, question: str) -> list[int]:
    """Keys of the entities that a question names, by name or alias, in its order.

    Case does not matter. Of names within a longer name, only the longer one counts.
    """
    stretches = _stretches(question)
    if not stretches:
        return []
    slugs = {slug_of(text): span for span, text in stretches.items()}
    texts = {text.lower(): span for span, text in stretches.items()}
    rows = fetch_rows(_NAMED, [palace.pk, Entity.Kind.values, list(slugs), palace.pk, list(texts)])
    spans = {key: slugs[slug] if slug else texts[alias] for key, slug, alias in rows}
    longest = [
        (span, key)
        for key, span in spans.items()
        if not any(_is_within(span, other) for other in spans.values())
    ]
    return [key for _, key in sorted(longest)]


def _stretches(question: str) -> dict[tuple[int, int], str]:
    """Runs of words that may be a name, by where they start and end."""
    words = [match.span() for match in _WORD.finditer(question)]
    stretches: dict[tuple[int, int], str] = {}
    for first in range(len(words)):
        for last in range(first, min(first + NAME_WORDS, len(words))):
            span = words[first][0], words[last][1]
            text = _POSSESSIVE.sub("", question[slice(*span)])
            if analyze(text) and text.lower() != _NOBODY:
                stretches[span] = text
    return stretches


def _is_within(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span != other and other[0] <= span[0] and span[1] <= other[1]


def near_entities(
    palace: Palace, question: str, *, as_of: datetime | None = None
) -> dict[int, float]:
    """Entities that a question names, by their keys, with 1; what facts lead to, with less.

    Args:
        as_of: Follow what was so then; what is held now unless given.
    """
    seeds = dict.fromkeys(named_entities(palace, question), 1.0)
    edges = walk(Fact.objects.within(palace).as_of(true_at=as_of), seeds.keys()).edges
    return {**expand(seeds, edges).entities, **seeds}
