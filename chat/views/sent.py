"""The page of calls to models: time, host, purpose, and references to what was sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404

from chat.models import Agent, Conversation
from language.english.grammatical_person import to_second_person
from llm.models import Usage
from llm.sent import INSTRUCTIONS
from llm.usage import CANCELLED, OK, SENT_FOR
from palace.models import Drawer, Fact
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page
from settings_app.row_tags import counted

TEMPLATE = "chat/sent.html"
ROWS = 25
# The most links of a kind in a row; the page of the call has the others, in pages of so many.
LINKS, LINKS_OF_CALL = 6, 100
OUTCOMES = {
    CANCELLED: "stopped before its end",
    "crashed": "broke off",
    "model_unavailable": "no usable answer: the model was down, slow or busy",
    "model_refused": "refused by the provider",
    "bad_model_output": "the answer was not usable",
    "embedder_unavailable": "no usable answer: the model was down, slow or busy",
    "embedder_misconfigured": "refused by the provider",
}
WORDS = {
    "chat": "Loci’s instructions for a chat",
    "filing": "Loci’s instructions for filing",
    "filing-and-facts": "Loci’s instructions for filing and facts",
    "facts": "Loci’s instructions for facts",
    "judging": "Loci’s instructions for comparing facts",
    "summary": "Loci’s instructions for summaries",
    "rerank": "Loci’s instructions for ordering",
    "rewrite": "Loci’s instructions for rewriting a question",
    "consolidation": "instructions of a dream: tidying up",
    "preferences": "instructions of a dream: preferences",
    "program": "a program’s own messages",
    "caller": "a program’s own instructions",
    "test": "a test of the connection, without a word of yours",
}
Keys = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True)
class Link:
    address: str
    label: str


@dataclass(slots=True)
class Parts:
    """The messages and facts that a call contained, as far as they still exist.

    Attributes:
        gone: Messages and facts that were deleted since, or are in the trash.
    """

    instructions: list[str] = field(default_factory=list)
    places: list[Link] = field(default_factory=list)
    messages: list[Link] = field(default_factory=list)
    facts: list[Link] = field(default_factory=list)
    gone: int = 0

    @property
    def first(self) -> list[Link]:
        return [*self.places, *self.messages[:LINKS], *self.facts[:LINKS]]

    @property
    def more(self) -> int:
        return len(self.messages[LINKS:]) + len(self.facts[LINKS:])

    @property
    def counts(self) -> list[str]:
        each = (len(self.messages), "message"), (len(self.facts), "fact")
        return [counted(number, noun) for number, noun in each if number]

    @property
    def summary(self) -> str:
        named = [f"“{link.label}”" for link in self.places]
        return ", ".join([*self.instructions, *named, *self.counts]) or "what is no longer here"

    @property
    def has_links(self) -> bool:
        return bool(self.places or self.messages or self.facts or self.gone)

    @property
    def is_empty(self) -> bool:
        return not (self.instructions or self.places or self.messages or self.facts or self.gone)


@dataclass(frozen=True, slots=True)
class Row:
    call: Usage
    parts: Parts

    @property
    def failure(self) -> str:
        if self.call.outcome == OK:
            return ""
        return OUTCOMES.get(self.call.outcome, "it failed")

    @property
    def tokens(self) -> int:
        return self.call.tokens_in + self.call.tokens_out


@signed_in_page
def sent(request: PageRequest) -> HttpResponse:
    """The calls before `?before=`, the latest first; `?call=` shows all parts of one."""
    calls = Usage.objects.filter(owner=request.user, requests__gt=0).order_by("-pk")
    if "call" in request.GET:
        return _one_call(request, calls)
    before = request.GET.get("before", "")
    if _is_key(before):
        calls = calls.filter(pk__lt=int(before))
    page = list(calls[: ROWS + 1])
    rows = rows_of(page[:ROWS], request.user.pk)
    context = {
        "rows": rows,
        "older": rows[-1].call.pk if len(page) > ROWS else None,
        "is_first": not before,
        "days": SENT_FOR.days,
    }
    return render_page_or_part(request, TEMPLATE, "rows", context)


def _one_call(request: PageRequest, calls: QuerySet[Usage]) -> HttpResponse:
    key = request.GET["call"]
    call = get_object_or_404(calls, pk=int(key) if _is_key(key) else 0)
    [row] = rows_of([call], request.user.pk)
    links = [*row.parts.places, *row.parts.messages, *row.parts.facts]
    context = {
        "row": row,
        "links": Paginator(links, LINKS_OF_CALL).get_page(request.GET.get("page")),
    }
    return render_page_or_part(request, "chat/sent_call.html", "links", context)


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def rows_of(calls: Sequence[Usage], owner_id: int) -> list[Row]:
    """The rows of some calls; each kind of reference is looked up once for all of them."""
    named = [_by_kind(call.references) for call in calls]
    found = _Found(named, owner_id)
    return [Row(call, found.parts(keys)) for call, keys in zip(calls, named, strict=True)]


def _by_kind(references: Iterable[str]) -> dict[str, list[str]]:
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for reference in references:
        kind, _, key = reference.partition(":")
        keys[kind].append(key)
    return keys


class _Found:
    """What the references of some calls lead to, within the owner's palaces."""

    def __init__(self, named: Sequence[Mapping[str, Sequence[str]]], owner_id: int) -> None:
        self._owner_id = owner_id
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for keys in named:
            for kind, each in keys.items():
                wanted[kind].update(each)
        self._drawers = self._drawers_of(wanted["drawer"])
        self._facts = self._facts_of(wanted["fact"], wanted["memory"])
        self._places = self._named(Conversation, wanted["conversation"], "title")
        self._agents = self._named(Agent, wanted["agent"], "name")

    def parts(self, keys: Mapping[str, Sequence[str]]) -> Parts:
        drawers, lost_drawers = _split(keys.get("drawer", ()), self._drawers)
        both = [*keys.get("fact", ()), *keys.get("memory", ())]
        facts, lost_facts = _split(both, self._facts)
        talks, lost_talks = _split(keys.get("conversation", ()), self._places)
        agents, lost_agents = _split(keys.get("agent", ()), self._agents)
        words = [WORDS.get(name, name) for name in keys.get(INSTRUCTIONS, ())]
        return Parts(
            instructions=words,
            places=[*agents, *talks],
            messages=drawers,
            facts=facts,
            gone=lost_drawers + lost_facts + lost_talks + lost_agents,
        )

    def _drawers_of(self, wanted: Collection[str]) -> dict[str, Link]:
        if not wanted:
            return {}
        by_key, by_uuid = _keys(wanted)
        kept = Drawer.objects.kept().filter(
            Q(pk__in=by_key) | Q(uuid__in=by_uuid), palace__owner=self._owner_id
        )
        columns = ("pk", "uuid", "number", "room__number", "room__wing__number", "palace__subject")
        links: dict[str, Link] = {}
        for drawer in kept.select_related("room__wing", "palace").only(*columns):
            # A page shows the owner's own palace only.
            address = "" if drawer.palace.subject else drawer.get_absolute_url()
            links[str(drawer.pk)] = links[str(drawer.uuid)] = Link(address, str(drawer.pointer))
        return links

    def _facts_of(self, facts: Collection[str], memories: Collection[str]) -> dict[str, Link]:
        if not facts and not memories:
            return {}
        by_key, by_memory = _keys({*facts, *memories})
        rows = Fact.objects.filter(
            Q(pk__in=by_key) | Q(memory__in=by_memory), palace__owner=self._owner_id
        )
        links: dict[str, Link] = {}
        for fact in rows.select_related("palace").order_by("pk"):
            address = "" if fact.palace.subject else fact.get_absolute_url()
            link = Link(address, to_second_person(fact.text))
            links[str(fact.pk)] = links[str(fact.memory)] = link
        return links

    def _named(
        self, model: type[Conversation | Agent], wanted: Collection[str], name: str
    ) -> dict[str, Link]:
        if not wanted:
            return {}
        rows: QuerySet[Any] = model._default_manager.filter(
            uuid__in=_keys(wanted)[1], palace__owner=self._owner_id
        )
        return {
            str(row.uuid): Link(row.get_absolute_url(), getattr(row, name) or "Untitled")
            for row in rows
        }


def _keys(wanted: Iterable[str]) -> tuple[list[int], list[UUID]]:
    numbers = [int(key) for key in wanted if key.isdecimal()]
    return numbers, [UUID(key) for key in wanted if not key.isdecimal()]


def _split(keys: Iterable[str], found: Mapping[str, Link]) -> tuple[list[Link], int]:
    """The distinct links, in order, and how many keys lead nowhere."""
    keys = list(keys)
    links = list(dict.fromkeys(found[key] for key in keys if key in found))
    return links, sum(key not in found for key in keys)
