"""Dreaming without a model: find duplicate and contradictory facts of a palace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import numpy as np

from language.english.judging.comparison import (
    FAR,
    Statement,
    contradict,
    opinions_against_tastes,
    pairs_sharing_words,
    say_the_same,
)
from language.facts import FactType
from palace.knowledge.dreaming.proposals import After, Finding, Kind
from palace.models import EmbeddingSpace, Fact, Palace
from palace.storage.indexing.fact_vectors import Vector, fetch

SAYS_THE_SAME = "they say the same"
AT_ODDS = "both cannot be so at once; the newer one holds"

# Rows of one product of vectors.
ROWS = 500
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_Pair = tuple[int, int]


def find_locally(palace: Palace, space: EmbeddingSpace, facts: Sequence[Fact]) -> list[Finding]:
    """Merges and contradictions among these facts, by rules and the vectors there are."""
    rows = {fact.pk: fact for fact in sorted(facts, key=_age)}
    statements = [_statement_of(fact) for fact in rows.values()]
    pairs = _alike(statements, fetch(palace, space, [fact.pk for fact in facts]))
    clusters = _clusters(statements, pairs)
    kept = {one.key: cluster[0].key for cluster in clusters for one in cluster}
    findings = [_merge(cluster, rows) for cluster in clusters]
    seen: set[_Pair] = set()
    for older, newer in _conflicts(statements, pairs, rows):
        # A merged fact is represented by the oldest of its cluster, and is not ended as well.
        ends = kept.get(older.key, older.key), kept.get(newer.key, newer.key)
        if ends not in seen and older.key not in kept:
            findings.append(_contradiction(rows[older.key], rows[newer.key]))
        seen.add(ends)
    return findings


def _statement_of(row: Fact) -> Statement:
    """A row as plain values."""
    return Statement(
        key=row.pk,
        type=cast(FactType, row.type),
        scope=(row.agent, row.run),
        subject=row.subject.name,
        subject_key=row.subject_id,
        predicate=row.predicate,
        object=row.object,
        text=row.text,
        aspect=row.aspect,
        stance=row.stance,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
    )


def _merge(cluster: Sequence[Statement], rows: Mapping[int, Fact]) -> Finding:
    """Keeps the text of the fullest fact; of equally full ones, that of the oldest."""
    facts = [rows[one.key] for one in cluster]
    fullest = rows[max(cluster, key=lambda one: len(one.wording.words)).key]
    tags = dict.fromkeys(tag for fact in facts for tag in fact.tags)
    category = fullest.category or next((fact.category for fact in facts if fact.category), "")
    return Finding(
        kind=Kind.MERGE,
        made_by="rules",
        sources=tuple(facts),
        after=After(fullest.text, category, tuple(tags)),
        why=SAYS_THE_SAME,
    )


def _contradiction(older: Fact, newer: Fact) -> Finding:
    return Finding(
        kind=Kind.CONTRADICTION,
        made_by="rules",
        sources=(older,),
        beside=(newer,),
        why=AT_ODDS,
    )


def _alike(statements: Sequence[Statement], vectors: Mapping[int, Vector]) -> dict[_Pair, float]:
    """Pairs worth comparing, by place, each with its cosine; 0 where that is not known."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, one in enumerate(statements):
        groups[one.group].append(place)
    pairs: dict[_Pair, float] = {}
    for places in groups.values():
        pairs |= _near(statements, places, vectors)
        for pair in pairs_sharing_words(statements, places):
            pairs.setdefault(pair, _cosine(statements, pair, vectors))
    return pairs


def _near(
    statements: Sequence[Statement], places: Sequence[int], vectors: Mapping[int, Vector]
) -> dict[_Pair, float]:
    known = [place for place in places if statements[place].key in vectors]
    if len(known) < 2:
        return {}
    matrix = np.stack([vectors[statements[place].key] for place in known])
    found: dict[_Pair, float] = {}
    for first in range(0, len(known), ROWS):
        cosines = matrix[first : first + ROWS] @ matrix.T
        for row, column in zip(*np.nonzero(cosines >= FAR), strict=True):
            if row + first < column:
                found[known[row + first], known[column]] = float(cosines[row, column])
    return found


def _cosine(statements: Sequence[Statement], pair: _Pair, vectors: Mapping[int, Vector]) -> float:
    first, second = (vectors.get(statements[place].key) for place in pair)
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
    statements: Sequence[Statement], pairs: Iterable[_Pair], rows: Mapping[int, Fact]
) -> Iterator[tuple[Statement, Statement]]:
    """Pairs that contradict each other, the older one first."""
    for first, second in sorted(pairs):
        if contradict(statements[first], statements[second]):
            yield statements[first], statements[second]
    for pair in opinions_against_tastes(statements):
        older, newer = sorted(pair, key=lambda one: _age(rows[one.key]))
        yield older, newer


def _age(fact: Fact) -> tuple[datetime, datetime, int]:
    """Sorts by how long a fact has been true, longest first; an unknown start is longest."""
    return fact.valid_from or _LONG_AGO, fact.recorded_at, fact.pk
