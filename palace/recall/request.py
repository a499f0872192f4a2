"""Request: the options of a recall, the settings that complete them, and the result.

Narrowing, one of the options, is conditions on the drawers to choose from, resolved before any are
ranked.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Exists, OuterRef, Q

from isolation.raw_sql import columns, default_instance, fetch_rows, read_instance
from language.analyzer import analyze_question
from language.storable import normalize_query
from llm import sent
from llm.tokens import count_tokens
from palace.models import Drawer, EmbeddingSpace, Mention, Palace, Pointer
from palace.recall.context_builder import Citation
from palace.recall.context_lines import PackableTurn
from palace.recall.deduplication import Carried, ConversationState, Injection
from palace.recall.facts import RecalledFact
from palace.recall.index.corpus_stats import (
    CHANGES,
    COUNTS,
    CorpusStats,
    TermIndex,
    TermKey,
    counts_parameters,
    read_corpus_stats,
    read_postings,
)
from palace.recall.index.index_loader import INDEX_CACHE
from palace.recall.keyword import POSTINGS, Postings, Readings, terms_of
from palace.recall.outdated import Outdated, Scope
from palace.recall.query import Query
from palace.recall.raw_sql import NO_KEYS, Keys, isin_sorted
from palace.recall.recipes import Recipe, recipe_chosen
from palace.recall.stages import RecipeGiven, recipe_given
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings

# Who said it: these roles, or the name of a speaker.
ROLES = ("user", "assistant")
# The most that programs may ask for: hits, and tokens of the context block.
MOST_HITS = 200
MOST_TOKENS = 32_000
# No palace has this revision.
NOTHING_KNOWN = TermIndex(CorpusStats(0, 0, NO_KEYS, revision=-1))


@dataclass(frozen=True, slots=True)
class Narrowing:
    """All conditions have to hold; one that is not set always does.

    Attributes:
        wing: The id of the wing the drawer lies in.
        person: The id of an entity that the drawer mentions.
        since: The first moment at which it may have been said.
        until: The last one. Unlike a recall's `as_of` it changes nothing else.
        speaker: Who said it: one of `ROLES`, or the name of a speaker.
        source: Where its conversation comes from, as in `Room.source`.
    """

    wing: UUID | None = None
    person: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    speaker: str = ""
    source: str = ""

    def __bool__(self) -> bool:
        return self != Narrowing()

    @property
    def record(self) -> dict[str, Any]:
        """As JSON, without what is not set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _as_json(value) for name, value in values.items() if value}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Narrowing:
        """The opposite of `record`."""
        return cls(**{name: _READ.get(name, str)(value) for name, value in record.items()})

    def condition(self, palace: Palace) -> Q:
        """A filter on the palace's drawers."""
        condition = Q()
        if self.wing is not None:
            condition &= Q(room__wing__uuid=self.wing)
        if self.person is not None:
            named = Mention.objects.filter(palace=palace, entity__uuid=self.person)
            condition &= Q(Exists(named.filter(drawer=OuterRef("pk"))))
        if self.since is not None:
            condition &= Q(said_at__gte=self.since)
        if self.until is not None:
            condition &= Q(said_at__lte=self.until)
        if self.source:
            condition &= Q(source=self.source)
        return condition & self._said_by()

    def _said_by(self) -> Q:
        if not self.speaker:
            return Q()
        if self.speaker in ROLES:
            return Q(role=self.speaker)
        return Q(speaker__iexact=self.speaker)


EVERYTHING = Narrowing()
_READ: dict[str, Callable[[str], Any]] = {
    "wing": UUID,
    "person": UUID,
    "since": datetime.fromisoformat,
    "until": datetime.fromisoformat,
}


def _as_json(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def narrowed(palace: Palace, narrowing: Narrowing, only: Keys | None) -> Keys | None:
    """Keys of the drawers that pass, ascending and of `only`; `only` itself without conditions."""
    if not narrowing:
        return only
    drawers = Drawer.objects.within(palace).kept().filter(narrowing.condition(palace)).order_by()
    found = drawers.aggregate(keys=ArrayAgg("pk", default=[]))["keys"]
    keys = np.sort(np.array(found, dtype=np.int64))
    return keys if only is None else keys[isin_sorted(keys, only)]


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """What to find, and how.

    Attributes:
        query: The question; must not be blank.
        top_k: At most this many hits, from 1; None: the owner's setting.
        now: The moment that "yesterday" refers to; None: the present, by the owner's clock.
        as_of: Ignore what was said later.
        recipe: Name of a recipe, or a list of stages; None: the owner's setting.
        budget_tokens: Length of the context block; None: all hits.
        exclude_ids: Keys of drawers that are already in the prompt.
        repeats: Keys of drawers that ask the same question; they are excluded too.
        only_ids: Keys of the drawers to choose from; None: all.
        narrowing: Conditions on the drawers to choose from.
        nearest: Whether drawers that are too far from the question are hits too.
        judge: Key of a drawer that becomes a candidate even if it is far from the question.
        rerank: Whether a model reorders the best hits; None: the owner's setting.
        with_facts: Put known facts before the drawers in the context block, as many as the recipe
            says.
        session: The latest turns of the conversation, in order; they end the context block.
        agent: Who asks: facts and messages that only another agent may find are left out. Empty:
            nothing is left out.
        run: Include the facts kept for this run.
        conversation: The conversation to answer in: what its model has already is not repeated.
            Call `injection.mark()` once the block was sent. An opening message that names no
            subject, such as "hi", gets the latest drawers.
        store_trace: Store a trace (off in evaluations).
        beside: Another question, of which the caller needs the vector: see `Query.beside`.
    """

    query: str
    top_k: int | None = None
    now: datetime | None = None
    as_of: datetime | None = None
    recipe: RecipeGiven | None = None
    budget_tokens: int | None = None
    exclude_ids: Collection[int] = ()
    repeats: Collection[int] = ()
    only_ids: Collection[int] | None = None
    narrowing: Narrowing = EVERYTHING
    nearest: bool = False
    judge: int | None = None
    rerank: bool | None = None
    with_facts: bool = False
    session: Sequence[PackableTurn] = ()
    agent: str = ""
    run: str = ""
    conversation: ConversationState | None = None
    store_trace: bool = True
    beside: str = ""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Settings of one recall: the request's options, with the owner's as defaults.

    Attributes:
        settings: The owner's, or the defaults.
        space: The embedding space to search.
        postings: Of all terms that the question's words may be stored as.
        readings: The question's terms, from the analyzer.
        limit: Maximum number of hits, from 1.
        now: Aware; the moment that "yesterday" refers to.
    """

    settings: MemorySettings
    space: EmbeddingSpace
    corpus_stats: CorpusStats
    postings: Postings
    readings: Readings
    recipe: Recipe
    limit: int
    now: datetime


def read_request_context(palace: Palace, request: RecallRequest) -> RequestContext:
    """
    Raises:
        UnknownRecipe: no recipe has the requested name; BadRecipe: its stages are invalid.
    """
    readings = analyze_question(normalize_query(request.query))
    wanted, key = terms_of(readings), TermKey(palace.pk)
    known = INDEX_CACHE.find(key) or NOTHING_KNOWN
    [row] = fetch_rows(_statement(), _parameters(palace, wanted, known), prepared=True)
    values = iter(row)
    corpus_stats, postings = _read_terms(values, wanted, known)
    known = known if known.corpus_stats is corpus_stats else TermIndex(corpus_stats)
    INDEX_CACHE.put(key, known.with_postings(postings))
    space, stored = read_instance(EmbeddingSpace, values), read_instance(MemorySettings, values)
    settings = stored or default_instance(MemorySettings, owner_id=palace.owner_id)
    given = request.recipe
    return RequestContext(
        settings=settings,
        space=space or active_space(),
        corpus_stats=corpus_stats,
        postings=postings,
        readings=readings,
        recipe=recipe_chosen(settings.recipe) if given is None else recipe_given(given),
        limit=max(settings.top_k if request.top_k is None else request.top_k, 1),
        now=request.now or settings.local_now(),
    )


def _parameters(palace: Palace, wanted: list[str], known: TermIndex) -> list[object]:
    missing = [term for term in wanted if term not in known.postings]
    return [
        palace.pk,
        *(known.corpus_stats.revision, known.corpus_stats.log),
        *counts_parameters(palace),
        *(missing, wanted, palace.pk),
        palace.owner_id,
    ]


def _read_terms(
    values: Iterator[Any], wanted: list[str], known: TermIndex
) -> tuple[CorpusStats, Postings]:
    """Read the next ten values: what is not known yet or, after a change, everything."""
    changes, counts = list(islice(values, 2)), list(islice(values, 4))
    is_known = counts[0] is None
    stats = known.corpus_stats if is_known else read_corpus_stats(iter([*changes, *counts]))
    postings = {**dict.fromkeys(wanted), **read_postings(values)}
    if is_known:
        postings |= {term: known.postings[term] for term in wanted if term in known.postings}
    return stats, postings


@cache
def _statement() -> str:
    """Nothing is read again of the revision that is known."""
    return (
        "SELECT changes.*, counts.*, postings.*,"  # noqa: S608 - put together from constants.
        f" {columns(EmbeddingSpace, 's')}, {columns(MemorySettings, 'c')}"
        f" FROM ({CHANGES}) changes"
        " CROSS JOIN LATERAL (SELECT revision = %s AND log = %s AS is_known OFFSET 0) state"
        f" LEFT JOIN LATERAL ({COUNTS} WHERE NOT state.is_known OFFSET 0) counts ON true"
        " CROSS JOIN LATERAL (SELECT CASE WHEN state.is_known THEN %s::text[] ELSE %s::text[] END"
        " AS terms OFFSET 0) wanted"
        f" CROSS JOIN LATERAL ({POSTINGS.format(terms='wanted.terms')}) postings"
        " LEFT JOIN palace_embeddingspace s ON s.active"
        " LEFT JOIN settings_app_memorysettings c ON c.owner_id = %s"
    )


def scope_of(request: RecallRequest, context: RequestContext) -> Scope:
    """Whose facts say what is outdated."""
    return Scope(context.now, request.as_of, request.agent, request.run)


@dataclass(frozen=True, slots=True)
class Hit:
    """A drawer found by a recall.

    Attributes:
        score: In weighted standard deviations; higher is better; comparable within one recall.
        signals: The contribution of each signal; they sum to the score.
        passage: Start and end of the passage closest to the question.
        place_before: Rank by score, from 1, if a model reranked the hits.
        is_informative: False for a message that only asks or quotes: it may be a hit, but the
            block leaves it out, unless the query asks for earlier questions.
        outdated: What it says that no longer holds; None if nothing is known of that.
        ended: Keys of the facts that rest on it and have ended since.
    """

    drawer: Drawer
    pointer: Pointer
    score: float
    signals: Mapping[str, float]
    passage: tuple[int, int]
    place_before: int | None = None
    is_informative: bool = True
    outdated: Outdated | None = None
    ended: tuple[int, ...] = ()

    @property
    def note(self) -> str:
        return self.outdated.note if self.outdated else ""


@dataclass(frozen=True, slots=True)
class Recollection:
    """The result of a recall.

    Attributes:
        uuid: Also the id of the stored trace.
        hits: Best first.
        facts: The facts in the block, best first.
        context: The `<memory_context>` block within the budget; may be empty.
        citations: The source of each record in the block, in its order.
        notes: Sentences on what was degraded or left out.
        carried: Lines carried from earlier in the conversation, newest first.
        injection: The ledger update to apply once the block was sent.
        is_opening: Nothing matched the opening message, so the hits are the latest drawers.
        question: As it was parsed and embedded.
    """

    uuid: uuid.UUID
    query: str
    hits: tuple[Hit, ...]
    context: str
    notes: tuple[str, ...]
    duration_ms: float
    facts: tuple[RecalledFact, ...] = ()
    citations: tuple[Citation, ...] = ()
    carried: tuple[Carried, ...] = ()
    injection: Injection | None = None
    is_opening: bool = False
    question: Query | None = field(default=None, compare=False, repr=False)

    @property
    def context_tokens(self) -> int:
        """The block's tokens; counted at each call, as most callers do not ask."""
        return count_tokens(self.context)

    @property
    def has_sources(self) -> bool:
        """Whether it is made of anything from the palace."""
        return bool(self.hits or self.facts or self.carried)

    @property
    def references(self) -> list[str]:
        """What the block is made of, for the record of what is sent to a model."""
        hits = {hit.pointer: hit.drawer.pk for hit in self.hits}
        shown = [hits[one.pointer] for one in self.citations if one.pointer in hits]
        memories = [one.memory for one in self.citations if one.memory]
        return [
            *sent.references("drawer", shown),
            *sent.references("drawer", [one.drawer for one in self.carried if one.drawer]),
            *sent.references("memory", memories),
        ]
