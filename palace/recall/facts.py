"""Known facts: what is held to be so, for the block; of what was so before only where asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db.models import Case, FilteredRelation, FloatField, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from pgvector import HalfVector
from pgvector.django import MaxInnerProduct

from language.english.dates.time_intent import Period, TimeIntent
from language.english.intent import asks_of_past
from language.english.question_subject import asks_for_all, subject_of
from palace.aaak import Pointer
from palace.models import EmbeddingSpace, Evidence, Fact, Palace
from palace.models.facts import FactQuerySet, about_any
from palace.recall.graph import near_entities
from palace.recall.query import Query

# As the memory service has it: the facts it is sure enough of, and how many at most.
CONFIDENT = 0.7
MOST = 20
# What it is worth, in cosines, that the question names whom or what a fact is about; of those that
# facts lead to from there, as much less as they are further away.
NAMED = 0.2
# The least score of a fact for the block, of the embedder that recall was learnt with: where the
# question is close to what was said, where it asks for advice as well, and where nothing is close.
LEAST, LEAST_FOR_ADVICE, LEAST_ALONE = 0.15, 0.1, 0.3
# Standing instructions to the assistant hold whatever is asked.
INSTRUCTIONS = "instructions"
# What happened is no standing fact; who asks about the past gets it too.
_STANDING = (Fact.Type.FACT, Fact.Type.PREFERENCE, Fact.Type.OPINION)


@dataclass(frozen=True, slots=True)
class Past:
    """A question about the past: about these periods, or about any time before now if none."""

    periods: tuple[Period, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact for the block.

    Attributes:
        score: Cosine of its text with the question, and `NAMED` more where it is about what that
            names; higher is better.
        pointer: Of the drawer it rests on that was said last; None where there is none.
        drawer: That drawer.
        dates: When it held, where that is to be told: "until May 2024".
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


@dataclass(frozen=True, slots=True)
class FactFloor:
    """What a fact must have to come before a question; standing instructions come without.

    Attributes:
        least: Its score.
        terms: Where cosines say nothing, a word that begins with one of these will do.
        by_score: Whether the score says anything.
    """

    least: float = 0.0
    terms: tuple[str, ...] = ()
    by_score: bool = True

    def holds_for(self) -> Q:
        """The facts above it, of those that have a `score` and a `vector`."""
        above = Q(category=INSTRUCTIONS)
        if self.by_score:
            above |= Q(score__gte=self.least)
        if self.terms:
            begun = rf"\m(?:{'|'.join(map(re.escape, self.terms))})"
            worded = Q(text__iregex=begun)
            above |= worded & Q(vector__embedding=None) if self.by_score else worded
        return above


def fact_floor(question: Query, *, is_refused: bool) -> FactFloor | None:
    """None where the facts need not be close: what is asked for is all that is known.

    Args:
        is_refused: No drawer is close to the question.
    """
    if asks_for_all(question):
        return None
    terms = tuple(sorted(subject_of(question) - {"user"}))
    if question.vector is None:
        return FactFloor(NAMED / 10, terms)
    if not question.is_adapted:  # Its cosines are on another scale.
        return FactFloor(terms=terms, by_score=False) if is_refused else None
    if is_refused:
        return FactFloor(LEAST_ALONE, terms)
    return FactFloor(LEAST_FOR_ADVICE if question.intent.asks_advice else LEAST, terms)


def facts_for(
    palace: Palace,
    space: EmbeddingSpace,
    question: Query,
    *,
    floor: FactFloor | None = None,
    agent: str = "",
    run: str = "",
    known_at: datetime | None = None,
    limit: int = MOST,
) -> list[KnownFact]:
    """`known_facts` for a question as recall has read it."""
    return known_facts(
        palace,
        space,
        question.vector,
        near_entities(palace, question.text, as_of=question.as_of),
        now=question.now,
        as_of=question.as_of,
        known_at=known_at,
        past=past_asked(question.text, question.time, question.now),
        floor=floor,
        agent=agent,
        run=run,
        limit=limit,
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
    floor: FactFloor | None = None,
    agent: str = "",
    run: str = "",
    limit: int = MOST,
) -> list[KnownFact]:
    """The facts that belong before a question, best first.

    What is no longer so is left out, unless the question is about the past: then it comes with
    the dates it held for. What has an end to come tells that, too.

    Args:
        vector: Of the question, in `space`; without one the newest come first, the near before.
        near: Entities by their keys: 1 for those that the question names, less for those that
            facts lead to from there.
        as_of: What was so then, and was said by then; what is so `now` unless given.
        known_at: As we knew it then, on the other clock.
        past: What of the past is asked about, if anything.
        floor: What they must have; nothing unless given.
        agent: Facts kept for this agent, beside those kept for nobody in particular; likewise
            `run`. Facts of other agents and runs never come.
    """
    facts = _so(Fact.objects.within(palace), as_of or now, as_of, known_at, past)
    facts = facts.filter(confidence__gte=CONFIDENT, agent__in={"", agent}, run__in={"", run})
    ranked = _ranked(palace, space, facts, vector, near, floor)
    return [
        KnownFact(fact, score, *cited, _dates(fact, now, known_at, asked=past is not None))
        for fact, score, cited in _with_words(palace, ranked, as_of, limit)
    ]


def past_asked(text: str, time: TimeIntent, now: datetime) -> Past | None:
    """What of the past a question is about; None where it is about what holds now."""
    periods = tuple(period for period in time.periods if period.end <= now)
    if periods or time.first or time.last or asks_of_past(text):
        return Past(periods)
    return None


def _so(
    facts: FactQuerySet,
    moment: datetime,
    as_of: datetime | None,
    known_at: datetime | None,
    past: Past | None,
) -> FactQuerySet:
    """What was so at the moment, or at any time in the past that is asked about."""
    if past is not None:
        return _ever_so(facts, moment, known_at, past)
    facts = facts.filter(type__in=_STANDING)
    # Somebody who is to move next month lives here until then: that is superseded, and still so.
    return facts.as_of(true_at=moment, known_at=known_at)


def _ever_so(
    facts: FactQuerySet, moment: datetime, known_at: datetime | None, past: Past
) -> FactQuerySet:
    held = Q(retired_at=None) | Q(fate__in=Fact.WAS_TRUE)
    if known_at is not None:
        held |= Q(retired_at__gt=known_at)
        facts = facts.filter(recorded_at__lte=known_at)
    facts = facts.filter(held, Q(valid_from=None) | Q(valid_from__lte=moment))
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
) -> Ranked:
    """Keys and scores, best first; nothing else, as all of them are sorted."""
    score: Combinable = Case(*_worth(near), default=Value(0.0), output_field=FloatField())
    facts = facts.annotate(
        vector=FilteredRelation(
            "vectors", condition=Q(vectors__palace=palace, vectors__space=space)
        )
    )
    if vector is not None:
        # What has no vector yet counts as neither close nor far.
        score -= Coalesce(MaxInnerProduct("vector__embedding", HalfVector(vector)), 0.0)
    above = floor.holds_for() if floor else Q()
    return (
        facts.annotate(score=score)
        .filter(above)
        .order_by("-score", "-recorded_at", "-pk")
        .values_list("pk", "score")
    )


def _worth(near: Mapping[int, float]) -> Iterator[When]:
    """What it is worth to be about an entity, the nearest first."""
    for nearness in sorted(set(near.values()), reverse=True):
        keys = [key for key, value in near.items() if value == nearness]
        yield When(about_any(keys), then=Value(NAMED * nearness))


# Where a fact was said, or that it never was.
Cited = tuple[Pointer | None, UUID | None]


def _with_words(
    palace: Palace, ranked: Ranked, as_of: datetime | None, limit: int
) -> list[tuple[Fact, float, Cited]]:
    """The best with words outside of the trash, said by then; and those that never had any.

    Nearly all have words, and there may be many: those that are not among the best are not
    looked at.
    """
    found: list[tuple[Fact, float, Cited]] = []
    for first in count(0, 2 * limit):
        scores = dict(ranked[first : first + 2 * limit])
        facts = Fact.objects.within(palace).in_bulk(list(scores))
        cited = founded(palace, facts, as_of)
        found += [(facts[key], score, cited[key]) for key, score in scores.items() if key in cited]
        if len(found) >= limit or len(scores) < 2 * limit:
            break
    return found[:limit]


def founded(palace: Palace, facts: Mapping[int, Fact], as_of: datetime | None) -> dict[int, Cited]:
    """By fact where it was said; without those that were said in the trash, or later, only."""
    cited: dict[int, Cited] = {**_cited(palace, facts, as_of)}
    uncited = facts.keys() - cited.keys()
    if uncited:
        words = Evidence.objects.filter(palace=palace, fact__in=uncited)
        wordless = uncited - set(words.values_list("fact", flat=True))
        for key in wordless:
            if as_of is None or facts[key].recorded_at <= as_of:
                cited[key] = None, None
    return cited


def _cited(
    palace: Palace, facts: Collection[int], as_of: datetime | None
) -> dict[int, tuple[Pointer, UUID]]:
    """By fact the pointer and drawer of the words said last, by then."""
    words = Evidence.objects.filter(palace=palace, fact__in=list(facts), drawer__trashed_at=None)
    if as_of is not None:
        words = words.filter(drawer__said_at__lte=as_of)
    rows = (
        words.order_by("fact", "-drawer__said_at", "-drawer")
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


def _dates(fact: Fact, now: datetime, known_at: datetime | None, *, asked: bool) -> str:
    """When it held, where there is an end to tell of or it is `asked`, by the asker's calendar."""

    def month(moment: datetime) -> str:
        return moment.astimezone(now.tzinfo).strftime("%B %Y")

    since, until = fact.valid_from, fact.valid_to
    if known_at is not None and fact.retired_at is not None and fact.retired_at > known_at:
        until = None  # Its end was not known then.
    if fact.type == Fact.Type.EVENT:
        return month(since) if since else ""
    if until is None:
        return f"since {month(since)}" if asked and since else ""
    if asked and since and month(since) != month(until):
        return f"from {month(since)} until {month(until)}"
    return f"until {month(until)}"
