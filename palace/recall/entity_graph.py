"""Graph: traversal of the facts that connect entities."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import F

from isolation.raw_sql import fetch_rows
from language.analyzer import has_terms, language_of
from language.slugs import slug_of, without_emphasis
from palace.models import Entity, Fact, FactQuerySet, Mention, Palace, about_any

# Multi-hop expansion, as the memory service specifies: hop n gets the seed's score times 0.6^n.
HOPS = 3
DECAY = 0.6
# At most this many facts per hop are followed, newest first.
MAX_EDGES = 1000
# Longer names are not searched in questions.
NAME_WORDS = 5

# The entity name for the user; "user" in a question is not a name.
_USER = "user"
_WORD = re.compile(r"(?:(?<![\w.])\.)?\w+(?:[.&'’\-]\w+)*(?:[+#*%]+|--?(?!\S))?")
_POSSESSIVE = re.compile(r"['’]s?$")
_NAMED = """
    SELECT id, slug, '' FROM palace_entity
    WHERE palace_id = %s AND kind = ANY(%s) AND slug = ANY(%s)
    UNION ALL
    SELECT id, '', lower(alias) FROM palace_entity CROSS JOIN unnest(aliases) AS alias
    WHERE palace_id = %s AND aliases <> '{}' AND lower(alias) = ANY(%s)
"""


def listed(choices: Iterable[str]) -> str:
    return ", ".join(f"'{choice}'" for choice in choices)


# Conditions on facts `f`. A superseded fact may still be valid: someone who moves next month lives
# here until then.
HAD_BEGUN = f"""
(f.retired_at IS NULL OR f.fate IN ({listed(Fact.WAS_TRUE)}))
AND (f.valid_from IS NULL OR f.valid_from <= %(moment)s::timestamptz)
"""
TRUE_AT = f"{HAD_BEGUN} AND (f.valid_to IS NULL OR f.valid_to > %(moment)s::timestamptz)"
# Facts that lead from some entities to others, newest first.
_EDGES = f"""
SELECT f.id, f.subject_id, f.object_entity_id FROM palace_fact f
WHERE f.palace_id = %(palace)s AND {{valid}} AND f.object_entity_id IS NOT NULL
  AND f.object_entity_id <> f.subject_id
  AND (f.subject_id = ANY(%(entities)s::bigint[])
       OR f.object_entity_id = ANY(%(entities)s::bigint[]))
ORDER BY f.recorded_at DESC, f.id DESC LIMIT {MAX_EDGES}
"""  # noqa: S608 - put together from constants.


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact between two entities, all by key; traversed in both directions."""

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
        hops: Shortest distance in edges by entity; 0 for the start.
    """

    edges: Collection[Edge]
    hops: Mapping[int, int] = field(default_factory=dict)

    def distances(self) -> dict[int, int]:
        """How many edges away each fact is, from 1, nearest first."""
        ends = {edge.fact: (self.hops[edge.subject], self.hops[edge.object]) for edge in self.edges}
        found = {fact: min(both) + 1 for fact, both in ends.items()}
        return dict(sorted(found.items(), key=lambda pair: pair[1]))


def expand(seeds: Mapping[int, float], edges: Iterable[Edge], *, hops: int = HOPS) -> Expanded:
    """Score what seeds lead to; if several seeds lead there, the best score counts. Pure.

    An entity n edges away gets the seed's score times `DECAY` to the power of n, and so does the
    edge that leads there. Seeds are never among the entities.
    """
    neighbours_of: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for edge in edges:
        neighbours_of[edge.subject].append((edge.fact, edge.object))
        neighbours_of[edge.object].append((edge.fact, edge.subject))
    entities: dict[int, float] = {}
    facts: dict[int, float] = {}
    # Seed scores are propagated without decay, so that decay depends on the number of hops alone.
    seed_scores = dict(seeds)
    for hop in range(1, hops + 1):
        next_scores: dict[int, float] = {}
        for entity, seed in seed_scores.items():
            score = seed * DECAY**hop
            for fact, reached in neighbours_of[entity]:
                facts[fact] = max(facts.get(fact, 0.0), score)
                next_scores[reached] = max(next_scores.get(reached, 0.0), seed)
                if reached not in seeds:
                    entities[reached] = max(entities.get(reached, 0.0), score)
        seed_scores = next_scores
    return Expanded(entities, facts)


def walk(facts: FactQuerySet, entities: Collection[int], *, hops: int = HOPS) -> Walk:
    """The edges up to `hops` away from entities, with one query per hop.

    Args:
        facts: The facts of one palace that may be followed.
    """
    return _walk(partial(_edges, facts), entities, hops)


def _walk(
    edges_of: Callable[[Collection[int]], Iterable[tuple[int, int, int]]],
    entities: Collection[int],
    hops: int,
) -> Walk:
    edges: dict[int, Edge] = {}
    reached = dict.fromkeys(entities, 0)
    frontier = set(entities)
    for hop in range(1, hops + 1):
        if not frontier:
            break
        found = [Edge(*row) for row in edges_of(frontier)]
        edges |= {edge.fact: edge for edge in found}
        ends = {key for edge in found for key in (edge.subject, edge.object)}
        frontier = ends - reached.keys()
        reached |= dict.fromkeys(frontier, hop)
    return Walk(edges.values(), reached)


def _edges(facts: FactQuerySet, entities: Collection[int]) -> Iterable[tuple[int, int, int]]:
    edges = facts.filter(about_any(entities), object_entity__isnull=False)
    rows = edges.exclude(subject=F("object_entity")).order_by("-recorded_at", "-pk")
    return rows.values_list("pk", "subject_id", "object_entity_id")[:MAX_EDGES]


def _edges_now(
    palace: Palace, as_of: datetime | None, entities: Collection[int]
) -> Iterable[tuple[int, int, int]]:
    """`_edges` of active facts or, if a moment is given, of those that were true then."""
    valid = "f.retired_at IS NULL" if as_of is None else TRUE_AT
    given = {"palace": palace.pk, "moment": as_of, "entities": list(entities)}
    rows: Iterable[Any] = fetch_rows(_EDGES.format(valid=valid), given, prepared=True)
    return rows


def named_entities(palace: Palace, question: str) -> list[int]:
    """Keys of the entities that a question names, by name or alias, in order of occurrence.

    Case is ignored. A name within a longer name does not count.
    """
    spans_of_names = _possible_names(question)
    if not spans_of_names:
        return []
    slugs = {slug_of(text): span for span, text in spans_of_names.items()}
    texts = {text.lower(): span for span, text in spans_of_names.items()}
    rows = fetch_rows(
        _NAMED, [palace.pk, Entity.Kind.values, list(slugs), palace.pk, list(texts)], prepared=True
    )
    spans = {key: slugs[slug] if slug else texts[alias] for key, slug, alias in rows}
    longest = [
        (span, key)
        for key, span in spans.items()
        if not any(_is_within(span, other) for other in spans.values())
    ]
    return [key for _, key in sorted(longest)]


def _possible_names(question: str) -> dict[tuple[int, int], str]:
    """Word sequences that may be a name, by start and end."""
    question = without_emphasis(question)
    language = language_of(question)
    words = [match.span() for match in _WORD.finditer(question)]
    spans_of_names: dict[tuple[int, int], str] = {}
    for first in range(len(words)):
        for last in range(first, min(first + NAME_WORDS, len(words))):
            span = words[first][0], words[last][1]
            text = _POSSESSIVE.sub("", question[slice(*span)])
            if has_terms(slug_of(text), language) and text.lower() != _USER:
                spans_of_names[span] = text
    return spans_of_names


def _is_within(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span != other and other[0] <= span[0] and span[1] <= other[1]


def near_entities(
    palace: Palace,
    question: str,
    *,
    as_of: datetime | None = None,
    hops: int = HOPS,
    mentioned_in: Collection[int] = (),
) -> dict[int, float]:
    """Nearness by entity key: 1 if the question names the entity, less if facts lead to it.

    Args:
        as_of: Follow the facts valid at this moment; default: active facts.
        mentioned_in: Keys of drawers; what they mention is one hop away, and hops go on from there.
    """
    seeds = dict.fromkeys(_mentioned(palace, mentioned_in), DECAY)
    seeds |= dict.fromkeys(named_entities(palace, question), 1.0)
    edges = _walk(partial(_edges_now, palace, as_of), seeds.keys(), hops).edges
    return {**expand(seeds, edges, hops=hops).entities, **seeds}


def _mentioned(palace: Palace, drawers: Collection[int]) -> list[int]:
    if not drawers:
        return []
    mentions = Mention.objects.filter(palace=palace, drawer__in=list(drawers))
    return list(mentions.order_by("entity").values_list("entity_id", flat=True).distinct())
