"""Dreaming without a model: what says the same, and what cannot both be so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations

import numpy as np

from language.english.judging.wording import without_figures
from language.facts import is_single
from language.slugs import slug_of
from palace.knowledge.dreaming.findings import After, Finding, Kind
from palace.knowledge.dreaming.rules import (
    FAR,
    TOGETHER,
    Statement,
    at_odds,
    say_the_same,
    speaks_against,
)
from palace.models import EmbeddingSpace, Fact, FactVector, Palace
from palace.storage.indexing.fact_vectors import Vector

SAYS_THE_SAME = "they say the same"
AT_ODDS = "both cannot be so at once; the newer one holds"

# Rows of one product of vectors.
ROWS = 500
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_Pair = tuple[int, int]


def find_locally(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> list[Finding]:
    """Merges and contradictions among these facts, by rules and the vectors there are."""
    statements = [Statement(fact) for fact in sorted(facts, key=_age)]
    pairs = _alike(statements, _vectors(palace, space, facts))
    clusters = _clusters(statements, pairs)
    kept = {one.fact.pk: cluster[0] for cluster in clusters for one in cluster}
    findings = [_merge(cluster) for cluster in clusters]
    seen: set[tuple[int, int]] = set()
    for older, newer in _conflicts(statements, pairs):
        # Of those that say the same one stands for all: which is merged is not also ended.
        ends = kept.get(older.fact.pk, older), kept.get(newer.fact.pk, newer)
        key = ends[0].fact.pk, ends[1].fact.pk
        if key not in seen and older.fact.pk not in kept:
            findings.append(_contradiction(older, newer))
        seen.add(key)
    return findings


def _merge(cluster: Sequence[Statement]) -> Finding:
    """Worded as the one that says most; of those, the oldest."""
    fullest = max(cluster, key=lambda one: len(one.wording.words)).fact
    tags = dict.fromkeys(tag for one in cluster for tag in one.fact.tags)
    category = fullest.category or next(
        (one.fact.category for one in cluster if one.fact.category), ""
    )
    return Finding(
        kind=Kind.MERGE,
        made_by="rules",
        sources=tuple(one.fact for one in cluster),
        after=After(fullest.text, category, tuple(tags)),
        why=SAYS_THE_SAME,
    )


def _contradiction(older: Statement, newer: Statement) -> Finding:
    return Finding(
        kind=Kind.CONTRADICTION,
        made_by="rules",
        sources=(older.fact,),
        beside=(newer.fact,),
        why=AT_ODDS,
    )


def _vectors(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> dict[int, Vector]:
    rows = FactVector.objects.filter(palace=palace, space=space, fact__in=[f.pk for f in facts])
    return {
        key: np.asarray(vector, dtype=np.float32)
        for key, vector in rows.values_list("fact_id", "embedding")
    }


def _alike(statements: Sequence[Statement], vectors: Mapping[int, Vector]) -> dict[_Pair, float]:
    """Pairs worth comparing, by place, each with its cosine; 0 where that is not known."""
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(statements):
        groups[one.group].append(place)
    pairs: dict[_Pair, float] = {}
    for places in groups.values():
        pairs |= _near(statements, places, vectors)
        for pair in _sharing(statements, places):
            pairs.setdefault(pair, _cosine(statements, pair, vectors))
    return pairs


def _near(
    statements: Sequence[Statement], places: Sequence[int], vectors: Mapping[int, Vector]
) -> dict[_Pair, float]:
    known = [place for place in places if statements[place].fact.pk in vectors]
    if len(known) < 2:
        return {}
    matrix = np.stack([vectors[statements[place].fact.pk] for place in known])
    found: dict[_Pair, float] = {}
    for first in range(0, len(known), ROWS):
        cosines = matrix[first : first + ROWS] @ matrix.T
        for row, column in zip(*np.nonzero(cosines >= FAR), strict=True):
            if row + first < column:
                found[known[row + first], known[column]] = float(cosines[row, column])
    return found


def _sharing(statements: Sequence[Statement], places: Sequence[int]) -> Iterator[_Pair]:
    """Those with the same words, the same object, or the same matter of which there is one."""
    buckets: defaultdict[tuple[str, object], list[int]] = defaultdict(list)
    diets, foods = [], []
    for place in places:
        one = statements[place]
        for key in _shared(one):
            buckets[key].append(place)
        if one.predicate == "diet":
            diets.append(place)
        if one.predicate in ("likes", "does", "eats"):
            foods.append(place)
    for bucket in buckets.values():
        yield from combinations(bucket, 2)
    yield from (_ordered(diet, food) for diet in diets for food in foods)


def _shared(one: Statement) -> Iterator[tuple[str, object]]:
    """What others have to have in common with it to be compared, one of these at least."""
    yield "words", one.wording.words
    yield "asserted", one.wording.asserted
    if one.wording.object:
        yield "object", one.wording.object
    if is_single(one.predicate):
        yield "single", one.predicate
    if one.predicate == "lives_with":
        yield "single", "lives_with"
    if one.predicate in TOGETHER or one.predicate == "relationship_status":
        yield "single", "together"
    if one.wording.figures:
        yield "figures", without_figures(one.fact.text)


def _ordered(one: int, other: int) -> _Pair:
    return min(one, other), max(one, other)


def _cosine(statements: Sequence[Statement], pair: _Pair, vectors: Mapping[int, Vector]) -> float:
    first, second = (vectors.get(statements[place].fact.pk) for place in pair)
    return 0.0 if first is None or second is None else float(first @ second)


def _clusters(
    statements: Sequence[Statement], pairs: Mapping[_Pair, float]
) -> list[list[Statement]]:
    """Statements that say the same, the oldest first; each says the same as the oldest."""
    head: dict[int, int] = {}
    clusters: defaultdict[int, list[int]] = defaultdict(list)
    for (first, second), cosine in sorted(pairs.items()):
        if first in head or second in head:
            continue
        if say_the_same(statements[first], statements[second], cosine):
            clusters[first].append(second)
            head[second] = first
    return [
        [statements[first], *(statements[other] for other in others)]
        for first, others in sorted(clusters.items())
    ]


def _conflicts(
    statements: Sequence[Statement], pairs: Iterable[_Pair]
) -> Iterator[tuple[Statement, Statement]]:
    for first, second in sorted(pairs):
        if at_odds(statements[first], statements[second]):
            yield statements[first], statements[second]
    yield from _against_opinions(statements)


def _against_opinions(statements: Sequence[Statement]) -> Iterator[tuple[Statement, Statement]]:
    """ "User loves Rust" is said of the user; "Rust is a chore" is said of Rust."""
    opinions: defaultdict[str, list[Statement]] = defaultdict(list)
    for one in statements:
        if one.fact.type == Fact.Type.OPINION:
            opinions[slug_of(one.fact.subject.name)].append(one)
    for taste in statements:
        if taste.predicate not in ("likes", "dislikes") or not taste.fact.object:
            continue
        for opinion in opinions[slug_of(taste.fact.object)]:
            same = (opinion.fact.agent, opinion.fact.run) == (taste.fact.agent, taste.fact.run)
            if same and opinion is not taste and speaks_against(opinion, taste):
                older, newer = sorted((opinion, taste), key=lambda one: _age(one.fact))
                yield older, newer


def _age(fact: Fact) -> tuple[datetime, datetime, int]:
    """Smallest of what has been so for longest; since when nobody knows is longer still."""
    return fact.valid_from or _LONG_AGO, fact.recorded_at, fact.pk
