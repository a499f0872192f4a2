"""Known facts: active facts for the block; past facts only if the question is about the past."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db.models import Case, Exists, F, FloatField, OuterRef, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from language.english.dates.time_intent import Period, TimeIntent
from language.english.questions import asks_for_all, asks_of_past, asks_of_self, subject_of
from language.facts import USER
from palace.models import (
    EmbeddingSpace,
    Entity,
    Evidence,
    Fact,
    FactQuerySet,
    Palace,
    Pointer,
    about_any,
    requires_permission,
)
from palace.recall.graph import near_entities
from palace.recall.query import MINILM, Query
from palace.storage.indexing.fact_vectors import with_cosines

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
STANDING = (Fact.Type.FACT, Fact.Type.PREFERENCE, Fact.Type.OPINION)


@dataclass(frozen=True, slots=True)
class Past:
    """A question about the past: about these periods or, if there are none, any time before now."""

    periods: tuple[Period, ...] = ()


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """A fact for the block.

    Attributes:
        score: Cosine with the question, plus `ENTITY_BOOST` if the question names what the fact
            is about; higher is better. 0 for a fact that comes with an outdated hit.
        pointer: Of its latest source drawer; None if it has no source.
        drawer: Id of that drawer.
        dates: Its validity as shown, such as "until May 2024"; may be empty.
    """

    fact: Fact
    score: float
    pointer: Pointer | None
    drawer: UUID | None
    dates: str

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

    def condition(self) -> Q:
        """A filter on facts annotated with `score` and `cosine`."""
        above = Q(category=INSTRUCTIONS)
        if self.by_score:
            above |= Q(score__gte=self.min_score)
            if self.min_score_if_unmined is not None:
                unmined = Evidence.objects.filter(
                    palace=OuterRef("palace"), fact=OuterRef("pk"), drawer__mined_at=None
                )
                above |= Q(Exists(unmined), score__gte=self.min_score_if_unmined)
        if self.terms:
            prefixes = rf"\m(?:{'|'.join(map(re.escape, self.terms))})"
            has_term = Q(text__iregex=prefixes)
            above |= has_term & Q(cosine=None) if self.by_score else has_term
        return above


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
    known_at: datetime | None = None,
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
        known_at=known_at,
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
    known_at: datetime | None = None,
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
        known_at: Transaction time: facts as recorded at this moment.
        past: The past that the question is about, if any.
        of_self: Whether the question is about the user, whose facts then come before those of
            others that are as close.
        floor: The condition for inclusion; default: none.
        agent: Only the facts of this agent and those without one; empty: the facts of all agents.
        run: Include the facts of this run; facts of other runs are never included.
        notes: Receives a sentence if something was degraded.
    """
    facts = _valid_at(Fact.objects.within(palace), as_of or now, as_of, known_at, past)
    facts = facts.filter(confidence__gte=MIN_CONFIDENCE, run__in={"", run}).for_agent(agent)
    ranked = _ranked(palace, space, facts, vector, near, floor, notes, of_self=of_self)
    return [
        RecalledFact(fact, score, *cited, _dates(fact, now, known_at, show_start=past is not None))
        for fact, score, cited in _with_evidence(palace, ranked, as_of, limit)
    ]


def read_past(text: str, time: TimeIntent, now: datetime) -> Past | None:
    """The past that a question is about; None if it is about the present."""
    periods = tuple(period for period in time.periods if period.end <= now)
    if periods or time.first or time.last or asks_of_past(text):
        return Past(periods)
    return None


def _valid_at(
    facts: FactQuerySet,
    moment: datetime,
    as_of: datetime | None,
    known_at: datetime | None,
    past: Past | None,
) -> FactQuerySet:
    """Facts valid at the moment or, for a question about the past, in the past it asks about."""
    if past is not None:
        return _valid_in_past(facts, moment, known_at, past)
    facts = facts.filter(type__in=STANDING)
    # A superseded fact may still be valid: someone who moves next month lives here until then.
    return facts.as_of(true_at=moment, known_at=known_at)


def _valid_in_past(
    facts: FactQuerySet, moment: datetime, known_at: datetime | None, past: Past
) -> FactQuerySet:
    was_valid = Q(retired_at=None) | Q(fate__in=Fact.WAS_TRUE)
    if known_at is not None:
        was_valid |= Q(retired_at__gt=known_at)
        facts = facts.filter(recorded_at__lte=known_at)
    facts = facts.filter(was_valid, Q(valid_from=None) | Q(valid_from__lte=moment))
    within = Q()
    for period in past.periods:
        begun = Q(valid_from=None) | Q(valid_from__lt=period.end)
        within |= begun & (Q(valid_to=None) | Q(valid_to__gt=period.start))
    return facts.filter(within)


Ranked = QuerySet[Fact, tuple[int, float]]


def _ranked(
    palace: Palace,
    space: EmbeddingSpace,
    facts: FactQuerySet,
    vector: npt.NDArray[np.float32] | None,
    near: Mapping[int, float],
    floor: FactFloor | None,
    notes: list[str] | None,
    *,
    of_self: bool,
) -> Ranked:
    """Keys and scores, best first; no other columns, because all rows are sorted."""
    score: Combinable = Case(*_entity_boosts(near), default=Value(0.0), output_field=FloatField())
    facts, note = with_cosines(palace, space, facts, vector)
    if note and notes is not None:
        notes.append(note)
    # A fact without a vector yet counts as neither close nor far.
    score += Coalesce(F("cosine"), 0.0)
    above = floor.condition() if floor else Q()
    of_user = When(subject__kind=Entity.Kind.PERSON, subject__name=USER, then=SELF_BOOST)
    boost = Case(of_user, default=0.0, output_field=FloatField()) if of_self else Value(0.0)
    return (
        facts.annotate(score=score)
        .filter(above)
        .order_by((F("score") + boost).desc(), "-recorded_at", "-pk")
        .values_list("pk", "score")
    )


def _entity_boosts(near: Mapping[int, float]) -> Iterator[When]:
    """Boosts for facts about near entities, nearest first."""
    for nearness in sorted(set(near.values()), reverse=True):
        keys = [key for key, value in near.items() if value == nearness]
        yield When(about_any(keys), then=Value(ENTITY_BOOST * nearness))


# The latest source of a fact; both None if it has none.
Cited = tuple[Pointer | None, UUID | None]


def _with_evidence(
    palace: Palace, ranked: Ranked, as_of: datetime | None, limit: int
) -> list[tuple[Fact, float, Cited]]:
    """The best facts with evidence outside the trash, said by `as_of`, or without any evidence.

    Nearly all facts have evidence, so only as many of the best are checked as needed.
    """
    found: list[tuple[Fact, float, Cited]] = []
    for first in count(0, 2 * limit):
        scores = dict(ranked[first : first + 2 * limit])
        if not scores:
            break
        facts = Fact.objects.within(palace).in_bulk(list(scores))
        cited = citations_of(palace, facts, as_of)
        found += [(facts[key], score, cited[key]) for key, score in scores.items() if key in cited]
        if len(found) >= limit or len(scores) < 2 * limit:
            break
    return found[:limit]


def citations_of(
    palace: Palace, facts: Mapping[int, Fact], as_of: datetime | None
) -> dict[int, Cited]:
    """Latest source by fact; facts whose evidence is all trashed or later are left out."""
    cited: dict[int, Cited] = {**_cited(palace, facts, as_of)}
    uncited = facts.keys() - cited.keys()
    if uncited:
        evidence = Evidence.objects.filter(palace=palace, fact__in=uncited)
        without_evidence = uncited - set(evidence.values_list("fact", flat=True))
        for key in without_evidence:
            if as_of is None or facts[key].recorded_at <= as_of:
                cited[key] = None, None
    return cited


def _cited(
    palace: Palace, facts: Collection[int], as_of: datetime | None
) -> dict[int, tuple[Pointer, UUID]]:
    """Pointer and id of the latest source drawer by fact, said by `as_of`."""
    evidence = Evidence.objects.filter(palace=palace, fact__in=list(facts), drawer__trashed_at=None)
    if as_of is not None:
        evidence = evidence.filter(drawer__said_at__lte=as_of)
    rows = (
        evidence.order_by("fact", "-drawer__said_at", "-drawer")
        .distinct("fact")
        .values_list(
            "fact",
            "drawer__room__wing__number",
            "drawer__room__number",
            "drawer__number",
            "drawer__uuid",
        )
    )
    return {fact: (Pointer(*place), drawer) for fact, *place, drawer in rows}


def month_of(moment: datetime, now: datetime) -> str:
    """The month, in the time zone of `now`."""
    return moment.astimezone(now.tzinfo).strftime("%B %Y")


def _dates(fact: Fact, now: datetime, known_at: datetime | None, *, show_start: bool) -> str:
    """The validity as shown, in the time zone of `now`; empty if there is nothing to show."""
    month = partial(month_of, now=now)
    since, until = fact.valid_from, fact.valid_to
    if known_at is not None and fact.retired_at is not None and fact.retired_at > known_at:
        until = None  # The end was not recorded yet.
    if fact.type == Fact.Type.EVENT:
        return month(since) if since else ""
    if until is None:
        return f"since {month(since)}" if show_start and since else ""
    if show_start and since and month(since) != month(until):
        return f"from {month(since)} until {month(until)}"
    return f"until {month(until)}"
