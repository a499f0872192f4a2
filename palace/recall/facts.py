"""Known facts: active facts for the block; past facts only if the question is about the past."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, cast
from uuid import UUID

import numpy as np
import numpy.typing as npt

from isolation.raw_sql import columns, fetch_rows, read_instance
from language.english.questions import asks_for_all, asks_of_self, subject_of
from language.facts import USER
from palace.models import (
    EmbeddingSpace,
    Entity,
    Fact,
    FactQuerySet,
    Palace,
    Pointer,
    requires_permission,
)
from palace.recall.entity_graph import HAD_BEGUN, TRUE_AT, listed, near_entities
from palace.recall.query import MINILM, Past, Query, read_past
from palace.storage.indexing.fact_vectors import cosine_in_sql

# The memory service specifies both: the least confidence of a fact, and how many at most.
MIN_CONFIDENCE = 0.7
MAX_FACTS = 20
# Added to the score of a fact about an entity that the question names; entities further away in
# the fact graph add proportionally less.
ENTITY_BOOST = 0.2
# Added for the order alone to facts about the user, if the question asks about its author.
SELF_BOOST = 0.1
# The least score of a fact for the block, with the embedder that recall was trained on: if drawers
# are close to the question, if it also asks for advice, and if no drawer is close.
MIN_SCORE, MIN_SCORE_FOR_ADVICE, MIN_SCORE_IF_REFUSED = 0.15, 0.1, 0.3
# The same if no drawer is close, but the fact's own is not mined yet, so nothing was compared with
# it. 2 % of off-topic questions reach this score with a fact, and 8 % reach `MIN_SCORE`.
MIN_SCORE_IF_UNMINED = 0.2
# Standing instructions to the assistant apply to every question.
INSTRUCTIONS = "instructions"
# Events are no standing facts; only questions about the past get them.
STANDING: tuple[str, ...] = (Fact.Type.FACT, Fact.Type.PREFERENCE, Fact.Type.OPINION)


@dataclass(frozen=True, slots=True)
class Source:
    """The latest drawer that a fact rests on.

    Attributes:
        source: Where its conversation comes from, and `external_id`: the message's id there.
    """

    pointer: Pointer
    uuid: UUID
    source: str
    external_id: str


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """A fact for the block.

    Attributes:
        fact: With the columns that a block needs; others are loaded when they are asked for.
        score: Cosine with the question, plus `ENTITY_BOOST` if the question names what the fact
            is about; higher is better. 0 for a fact that comes with an outdated hit.
        source: None if it has none.
        dates: Its validity as shown, such as "until May 2024"; may be empty.
    """

    fact: Fact
    score: float
    source: Source | None
    dates: str

    @property
    def pointer(self) -> Pointer | None:
        return self.source.pointer if self.source else None

    @property
    def drawer(self) -> UUID | None:
        """Id of its source."""
        return self.source.uuid if self.source else None

    @property
    def memory(self) -> UUID:
        return self.fact.memory

    @property
    def text(self) -> str:
        return self.fact.text

    @property
    def asks_first(self) -> bool:
        return requires_permission(self.fact.metadata)


@dataclass(frozen=True, slots=True)
class FactFloor:
    """The condition for a fact to enter the block; standing instructions always do.

    Attributes:
        min_score: The least score.
        terms: Without usable cosines, a word that begins with one of these suffices.
        by_score: Whether scores are usable. Without an embedder they are: each is then the boost
            for what the question names, and 0 for all else.
        min_score_if_unmined: The least score of a fact with a source drawer that is not mined yet;
            None: the same.
    """

    min_score: float = 0.0
    terms: tuple[str, ...] = ()
    by_score: bool = True
    min_score_if_unmined: float | None = None

    def condition(self) -> str:
        """On facts `f` that have a `score` and a `cosine`."""
        above = [f"f.category = '{INSTRUCTIONS}'"]
        if self.by_score:
            above.append("f.score >= %(min_score)s::float8")
            if self.min_score_if_unmined is not None:
                above.append(f"f.score >= %(min_score_if_unmined)s::float8 AND {_IS_UNMINED}")
        if self.terms:
            has_term = "f.text ~* %(terms)s::text"
            above.append(f"{has_term} AND f.cosine IS NULL" if self.by_score else has_term)
        return f"({' OR '.join(above)})"

    def parameters(self) -> dict[str, object]:
        return {
            "min_score": self.min_score,
            "min_score_if_unmined": self.min_score_if_unmined,
            "terms": rf"\m(?:{'|'.join(map(re.escape, self.terms))})",
        }


def fact_floor(question: Query, *, is_refused: bool) -> FactFloor | None:
    """The floor for a question; None if the question asks for everything known.

    Args:
        is_refused: No drawer is close to the question.
    """
    if asks_for_all(question):
        return None
    terms = tuple(sorted(subject_of(question) - {"user"}))
    if question.vector is None:
        return FactFloor(ENTITY_BOOST / 10, terms)
    if question.embedder != MINILM:  # Its cosines are on another scale.
        return FactFloor(terms=terms, by_score=False) if is_refused else None
    if is_refused:
        return FactFloor(MIN_SCORE_IF_REFUSED, terms, min_score_if_unmined=MIN_SCORE_IF_UNMINED)
    return FactFloor(MIN_SCORE_FOR_ADVICE if question.intent.asks_advice else MIN_SCORE, terms)


def facts_for(
    palace: Palace,
    space: EmbeddingSpace,
    question: Query,
    *,
    near: Mapping[int, float] | None = None,
    floor: FactFloor | None = None,
    agent: str = "",
    run: str = "",
    limit: int = MAX_FACTS,
    notes: list[str] | None = None,
) -> list[RecalledFact]:
    """`known_facts` for a `Query`.

    Args:
        near: Nearness by entity key; default: of what the question names.
    """
    if near is None:
        near = near_entities(palace, question.text, as_of=question.as_of)
    return known_facts(
        palace,
        space,
        question.vector,
        near,
        now=question.now,
        as_of=question.as_of,
        past=read_past(question.text, question.time, question.now),
        of_self=asks_of_self(question.text),
        floor=floor,
        agent=agent,
        run=run,
        limit=limit,
        notes=notes,
    )


def known_facts(
    palace: Palace,
    space: EmbeddingSpace,
    vector: npt.NDArray[np.float32] | None,
    near: Mapping[int, float],
    *,
    now: datetime,
    as_of: datetime | None = None,
    past: Past | None = None,
    of_self: bool = False,
    floor: FactFloor | None = None,
    agent: str = "",
    run: str = "",
    limit: int = MAX_FACTS,
    notes: list[str] | None = None,
) -> list[RecalledFact]:
    """The facts for a question, best first.

    Facts that are no longer valid are left out, unless the question is about the past: then they
    have their dates. Facts with an end in the future show it too.

    Args:
        vector: Of the question, in `space`; without it the order is by nearness, then newest first.
        near: Nearness by entity key: 1 for entities that the question names, less for entities
            reached over facts.
        as_of: Facts valid, and said, at this moment; default: valid `now`.
        past: The past that the question is about, if any.
        of_self: Whether the question is about the user, whose facts then come before those of
            others that are as close.
        floor: The condition for inclusion; default: none.
        agent: Only the facts of this agent and those without one; empty: the facts of all agents.
        run: Include the facts of this run; facts of other runs are never included.
        notes: Receives a sentence if something was degraded.
    """
    valid = f"{TRUE_AT} AND {IS_STANDING}" if past is None else _IN_PAST
    valid = f"{valid} AND {_OF_RUN}{_OF_AGENT if agent else ''}"
    periods = past.periods if past else ()
    parameters = {
        "palace": palace.pk,
        "space": space.pk,
        "agent": agent,
        "run": run,
        "limit": limit,
        "moment": as_of or now,
        "as_of": as_of,
        "starts": [one.start for one in periods],
        "ends": [one.end for one in periods],
        "near": list(near),
        "boosts": [ENTITY_BOOST * nearness for nearness in near.values()],
        **(floor.parameters() if floor else {}),
    }
    among = partial(_valid_facts, palace, valid, parameters)
    cosine, compared, note = cosine_in_sql(palace, space, vector, among)
    if note and notes is not None:
        notes.append(note)
    statement = _best(cosine, valid, floor.condition() if floor else "true", of_self=of_self)
    rows = fetch_rows(statement, {**parameters, **compared}, prepared=True)
    dates = partial(_dates, now=now, show_start=past is not None)
    return [_recalled(values, score, dates) for score, *values in rows]


# Conditions on facts `f`.
IS_STANDING: str = f"f.type IN ({listed(STANDING)})"
_IN_PAST = f"""
{HAD_BEGUN} AND (cardinality(%(starts)s::timestamptz[]) = 0 OR EXISTS (
    SELECT FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[]) AS period (start, stop)
    WHERE (f.valid_from IS NULL OR f.valid_from < period.stop)
      AND (f.valid_to IS NULL OR f.valid_to > period.start)))
"""
_OF_RUN = f"f.confidence >= {MIN_CONFIDENCE} AND f.run IN ('', %(run)s::text)"
_OF_AGENT = " AND f.agent IN ('', %(agent)s::text)"
_IS_UNMINED = """EXISTS (
    SELECT FROM palace_evidence e
    JOIN palace_drawer d ON d.palace_id = %(palace)s AND d.id = e.drawer_id
    WHERE e.palace_id = %(palace)s AND e.fact_id = f.id AND d.mined_at IS NULL)
"""
# The latest source of fact `f` outside the trash, said by `as_of`.
_SOURCE = """
    SELECT w.number AS wing, r.number AS room, d.number, d.uuid, d.source, d.external_id
    FROM palace_evidence e
    JOIN palace_drawer d ON d.palace_id = %(palace)s AND d.id = e.drawer_id
    JOIN palace_room r ON r.palace_id = %(palace)s AND r.id = d.room_id
    JOIN palace_wing w ON w.palace_id = %(palace)s AND w.id = r.wing_id
    WHERE e.palace_id = %(palace)s AND e.fact_id = f.id AND d.trashed_at IS NULL
      AND (%(as_of)s::timestamptz IS NULL OR d.said_at <= %(as_of)s::timestamptz)
    ORDER BY d.said_at DESC, r.started_at DESC, r.number DESC, d.number DESC LIMIT 1
"""
# It has such a source or, if it was recorded by then, none at all.
_IS_FOUNDED = """
(said.uuid IS NOT NULL
 OR (%(as_of)s::timestamptz IS NULL OR f.recorded_at <= %(as_of)s::timestamptz) AND NOT EXISTS (
    SELECT FROM palace_evidence e WHERE e.palace_id = %(palace)s AND e.fact_id = f.id))
"""
_OF_SELF = f"""
 + CASE WHEN f.subject_id IN (SELECT id FROM palace_entity WHERE palace_id = %(palace)s
    AND kind = '{Entity.Kind.PERSON}' AND name = '{USER}') THEN {SELF_BOOST} ELSE 0 END
"""  # noqa: S608 - put together from constants.
# Of a source and a fact, to be read by `_recalled`.
_READ = "{of}.wing, {of}.room, {of}.number, {of}.uuid, {of}.source, {of}.external_id"
_NOT_READ = frozenset(
    "subject_id predicate object object_entity_id aspect stance confidence tags agent run single"
    " supersedes_id opened_by_id closed_by_id settled_at withdrawn_at".split()
)


def _valid_facts(palace: Palace, valid: str, parameters: Mapping[str, Any]) -> FactQuerySet:
    """The facts among which a store of vectors outside of Postgres looks."""
    keys = f"SELECT f.id FROM palace_fact f WHERE f.palace_id = %(palace)s AND {valid}"  # noqa: S608 - put together from constants.
    found = [key for (key,) in fetch_rows(keys, parameters, prepared=True)]
    return Fact.objects.within(palace).filter(pk__in=found)


@cache
def _best(cosine: str, valid: str, above: str, *, of_self: bool) -> str:
    """Selects the best facts, in order.

    All are sorted, by few columns. Nearly all have a source, so only as many of the best are
    looked at as needed.
    """
    return f"""
        WITH near AS (
            SELECT * FROM unnest(%(near)s::bigint[], %(boosts)s::float8[]) AS n (entity, boost)
        )
        SELECT best.score, {_READ.format(of="best")}, {columns(Fact, "f", _NOT_READ)}
        FROM (
            SELECT f.*, said.* FROM (
                SELECT f.id, f.recorded_at, f.score, f.score{_OF_SELF if of_self else ""} AS place
                FROM (SELECT *, boost + coalesce(cosine, 0) AS score FROM (
                    SELECT f.id, f.recorded_at, f.subject_id, f.category, f.text,
                        coalesce(greatest(s.boost, o.boost), 0) AS boost, {cosine} AS cosine
                    FROM palace_fact f
                    LEFT JOIN palace_factvector v ON v.palace_id = %(palace)s
                        AND v.space_id = %(space)s AND v.fact_id = f.id
                    LEFT JOIN near s ON s.entity = f.subject_id
                    LEFT JOIN near o ON o.entity = f.object_entity_id
                    WHERE f.palace_id = %(palace)s AND {valid}
                    OFFSET 0
                ) f) f
                WHERE {above}
                ORDER BY place DESC, f.recorded_at DESC, f.id DESC
            ) f
            LEFT JOIN LATERAL ({_SOURCE}) said ON true
            WHERE {_IS_FOUNDED}
            ORDER BY f.place DESC, f.recorded_at DESC, f.id DESC
            LIMIT %(limit)s::bigint
        ) best
        JOIN palace_fact f ON f.palace_id = %(palace)s AND f.id = best.id
        ORDER BY best.place DESC, f.recorded_at DESC, f.id DESC
    """  # noqa: S608 - put together from constants.


@cache
def _named() -> str:
    """Selects these facts, those with a source first."""
    return f"""
        SELECT {_READ.format(of="said")}, {columns(Fact, "f", _NOT_READ)}
        FROM palace_fact f LEFT JOIN LATERAL ({_SOURCE}) said ON true
        WHERE f.palace_id = %(palace)s AND f.id = ANY(%(facts)s::bigint[]) AND {_IS_FOUNDED}
        ORDER BY said.uuid IS NULL, f.id
    """  # noqa: S608 - put together from constants.


def recalled_facts(
    palace: Palace, facts: Collection[int], as_of: datetime | None, dated_at: datetime | None = None
) -> list[RecalledFact]:
    """These facts by key, without those whose evidence is all trashed or later; score 0.

    Args:
        dated_at: Show since when they hold, in the time zone of this moment; default: no dates.
    """
    if not facts:
        return []
    given = {"palace": palace.pk, "facts": list(facts), "as_of": as_of}
    dates = partial(_dates, now=dated_at, show_start=True) if dated_at else None
    return [_recalled(row, 0.0, dates) for row in fetch_rows(_named(), given, prepared=True)]


def _recalled(
    row: Sequence[Any], score: float, dates: Callable[[Fact], str] | None
) -> RecalledFact:
    wing, room, number, *said = row[:6]
    fact = cast("Fact", read_instance(Fact, iter(row[6:]), _NOT_READ))
    source = None if wing is None else Source(Pointer(wing, room, number), *said)
    return RecalledFact(fact, score, source, dates(fact) if dates else "")


def month_of(moment: datetime, now: datetime) -> str:
    """The month, in the time zone of `now`."""
    return moment.astimezone(now.tzinfo).strftime("%B %Y")


def _dates(fact: Fact, now: datetime, *, show_start: bool) -> str:
    """The validity as shown, in the time zone of `now`; empty if there is nothing to show."""
    month = partial(month_of, now=now)
    since, until = fact.valid_from, fact.valid_to
    if fact.type == Fact.Type.EVENT:
        return month(since) if since else ""
    if until is None:
        return f"since {month(since)}" if show_start and since else ""
    if show_start and since and month(since) != month(until):
        return f"from {month(since)} until {month(until)}"
    return f"until {month(until)}"
