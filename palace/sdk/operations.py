"""Operations on memories: add, search, and find, change or delete one by its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict
from uuid import uuid4

from django.db.models import F, Q
from django.utils import timezone

from language.errors import EmptyQuery, NoSuchFact
from language.transcripts import Turn
from llm.database_writes import put_off
from llm.deadline import within
from llm.embedding import embed
from palace.curation.deletion import delete_fact
from palace.knowledge.facts import (
    VERBATIM_ROLES,
    Details,
    ExtractionOptions,
    fact_edits,
    remember,
    store_verbatim,
)
from palace.knowledge.facts.filters import condition_of
from palace.mining.pipeline import mine_rooms
from palace.mining.tasks import enqueue_mining
from palace.models import (
    Drawer,
    Fact,
    FactEvent,
    FactQuerySet,
    Palace,
    PalaceQuerySet,
    Room,
    about_any,
)
from palace.recall import named_entities, normalize_query, walk
from palace.sdk import arguments, result_conversion
from palace.sdk.arguments import BY, CallScope, Messages, Moment, account_of
from palace.sdk.errors import translate_errors
from palace.sdk.result_conversion import UNREAD, kept_words
from palace.sdk.results import AddResults, Deleted, HistoryRecord, MemoryItem, UpdatedItem
from palace.storage.indexing.fact_vectors import nearest
from palace.storage.indexing.spaces import active_space, model_of

# Doors for programs build on these names beside `palace.sdk`.
__all__ = [
    "UNREAD",
    "CallScope",
    "IngestionRequest",
    "account_of",
    "add",
    "delete",
    "facts_in",
    "find",
    "history",
    "kept_words",
    "list_page",
    "rewrite",
    "search_facts",
    "translate_errors",
]

# One result in this many goes to facts about the named entities and their direct neighbours.
SHARE_OF_CONNECTED = 3
# After these seconds of mining in a request a model is not asked any more.
MINED_HERE_S = 10
ScoredFacts = list[tuple[Fact, float]]
# Called with the locked memory before a change; raise to abort.
Check = Callable[[MemoryItem], None]


class _Where(TypedDict):
    agent: str
    run: str
    conversation: str
    metadata: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class IngestionRequest:
    """
    Attributes:
        name: Makes the call idempotent: repeated under the same name, it files nothing twice and
            extracts only what is missing. Also the conversation's id if there is no run.
        infers: Facts are extracted; otherwise each message is a memory as it is.
    """

    scope: CallScope
    name: str
    turns: Sequence[Turn]
    metadata: Mapping[str, Any]
    options: ExtractionOptions
    infers: bool = True

    @classmethod
    def read(
        cls,
        scope: CallScope,
        messages: Messages,
        *,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        judging_prompt: str | None = None,
        timestamp: Moment | None = None,
        name: str = "",
        infers: bool = True,
    ) -> Self:
        """Validate the arguments of `Memory.add`, and `infers`.

        Raises:
            BadInput: an argument cannot be stored; BadFilter.
        """
        said_at = arguments.moment_of("timestamp", timestamp) or timezone.now()
        name = name or str(uuid4())
        turns = arguments.turns_of(messages, said_at, name)
        for turn in () if infers else turns:
            if turn.role in VERBATIM_ROLES:
                arguments.statement_of(turn.text)
        return cls(
            scope,
            name,
            turns,
            arguments.metadata_of(metadata),
            arguments.manner_of(prompt, judging_prompt, filters),
            infers,
        )


def add(palace: Palace, request: IngestionRequest) -> AddResults:
    """Implements `Memory.add` for a palace; call it outside of a transaction."""
    where: _Where = {
        "agent": request.scope.agent,
        "run": request.scope.run,
        "conversation": request.name,
        "metadata": request.metadata,
        "source": BY,
    }
    if request.infers:
        lines = remember(palace, request.turns, options=request.options, **where)
    else:
        lines = store_verbatim(palace, request.turns, **where)
    _have_mined(palace, request.turns)
    results: AddResults = {"results": [result_conversion.event(line) for line in lines]}
    if lines.notes:
        results |= {"extraction": "degraded", "notes": lines.notes}
    return results


def _have_mined(palace: Palace, turns: Sequence[Turn]) -> None:
    """Queue mining of the drawers; without a queue mine them here, so that a search finds them."""
    waiting = Drawer.objects.within(palace).unmined().filter(source=BY)
    ids = [turn.external_id for turn in turns]
    room = waiting.filter(external_id__in=ids).values_list("room_id", flat=True).first()
    if room is not None and not enqueue_mining([room]):
        rooms = Room.objects.within(palace).select_related("palace", "wing").filter(pk=room)
        with within(MINED_HERE_S), put_off("Messages are mined"):
            mine_rooms(list(rooms))


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
    [vector] = embed([question], model_of(space), owner_id=palace.owner_id, is_question=True)
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


def facts_in(
    palace: Palace, scope: CallScope, true_at: Moment | None = None, known_at: Moment | None = None
) -> FactQuerySet:
    """The facts of a scope, as of a moment of either clock."""
    facts = Fact.objects.within(palace).as_of(
        true_at=arguments.moment_of("true_at", true_at),
        known_at=arguments.moment_of("known_at", known_at),
    )
    return scope.narrow(facts)


def list_page(
    palace: Palace | None,
    scope: CallScope,
    filters: Mapping[str, Any] | None,
    *,
    start: int,
    limit: int,
) -> tuple[list[MemoryItem], int]:
    """Memories within the scope, newest first, without the first `start`; and how many there are.

    Raises:
        BadFilter: the filter is invalid.
    """
    wanted = Q() if filters is None else condition_of(filters)
    if palace is None:
        return [], 0
    facts = facts_in(palace, scope).filter(wanted)
    newest = facts.select_related("subject").order_by("-recorded_at", "-pk")
    return result_conversion.items(palace, list(newest[start : start + limit])), facts.count()


def find(palaces: PalaceQuerySet, memory_id: str) -> MemoryItem | None:
    """An active memory, or one that was stated as past; else None."""
    versions = _versions(palaces, memory_id)
    past = versions.filter(_is_past_version()).order_by("-recorded_at", "-pk")
    fact = versions.active().first() or past.first()
    return _item(fact) if fact else None


def rewrite(
    palaces: PalaceQuerySet,
    memory_id: str,
    new_text: str | None,
    check: Check | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
) -> UpdatedItem:
    """
    Args:
        new_text: None leaves the text, as None leaves the metadata.

    Raises:
        NoSuchFact: there is no such memory; BadInput: the text cannot be stored; FactConflict.
    """
    text = None if new_text is None else arguments.statement_of(new_text)
    values = {} if metadata is None else {"metadata": arguments.metadata_of(metadata)}
    fact = _active_fact(palaces, memory_id)
    by, details = _scope_of(fact).writing(), Details(values=values)
    return result_conversion.updated(
        fact_edits.rewrite(
            fact.palace, fact.memory, text, by, check=_checks_row(check), details=details
        )
    )


def delete(palaces: PalaceQuerySet, memory_id: str, check: Check | None = None) -> Deleted:
    """Delete a memory, and messages sent to the fact API that only it uses.

    Raises:
        NoSuchFact: there is no such memory.
    """
    fact = _active_fact(palaces, memory_id)
    by = _scope_of(fact).writing()
    return result_conversion.deleted(
        delete_fact(fact.palace, fact.memory, by, check=_checks_row(check))
    )


def _checks_row(check: Check | None) -> Callable[[Fact], None] | None:
    return (lambda fact: check(_item(fact))) if check else None


def history(palaces: PalaceQuerySet, memory_id: str) -> list[HistoryRecord]:
    """All changes, oldest first; empty if there never was such a memory."""
    key = arguments.key_of(memory_id)
    events = FactEvent.objects.filter(palace__in=palaces, memory=key)
    return [result_conversion.record(event) for event in events.order_by("at", "pk")] if key else []


def _active_fact(palaces: PalaceQuerySet, memory_id: str) -> Fact:
    fact = _versions(palaces, memory_id).active().first()
    if fact is None:
        raise NoSuchFact(memory_id)
    return fact


def _versions(palaces: PalaceQuerySet, memory_id: str) -> FactQuerySet:
    """All versions of a memory."""
    key = arguments.key_of(memory_id)
    if key is None:
        return Fact.objects.none()
    facts = Fact.objects.filter(palace__in=palaces, memory=key)
    return facts.select_related("palace", "subject")


def _is_past_version() -> Q:
    """Facts stated as past were never active; they exist for `true_at`."""
    return Q(retired_at=F("recorded_at"), fate__in=Fact.WAS_TRUE)


def _scope_of(fact: Fact) -> CallScope:
    return CallScope(fact.palace.subject, fact.agent, fact.run)


def _item(fact: Fact) -> MemoryItem:
    return result_conversion.items(fact.palace, [fact])[0]
