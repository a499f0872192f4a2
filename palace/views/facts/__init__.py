"""The pages of facts: the list, opinions over time, and one fact with its versions and sources.

Opinions over time have a lane for each aspect, with its stances in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import Http404, HttpResponse
from django.utils import timezone

from language.facts import PREDICATES
from palace.models import Fact, FactQuerySet, Palace, Proposal
from palace.queries.facts import EVER_TRUE, add_quotes, history
from palace.views.facts.changes import change_lines
from palace.views.facts.filters import CLOCKS, STATES, FactFilter, close_in_meaning
from palace.views.shared.palace_tags import TYPES
from palace.views.shared.query_params import UncountedPage, find_by_uuid
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page

CLOSE_SHOWN = 8
VERSIONS_SHOWN = 60
EVENTS_SHOWN = 120
OPINIONS_SHOWN = 200
WORDS_SHOWN = 12
CATEGORIES = sorted({predicate.category for predicate in PREDICATES.values()})


@signed_in_page
def facts(request: PageRequest) -> HttpResponse:
    """The latest first; `?after=` is the cursor."""
    palace = Palace.objects.own(request.user)
    asked = FactFilter.read(palace, request.GET)
    found = _behind(palace, asked.facts(palace), request.GET.get("after", ""))
    listed = found.select_related("subject").order_by("-recorded_at", "-pk")
    rows = UncountedPage(listed)
    add_quotes(palace, rows.rows)
    context = {
        "asked": asked,
        "list": rows,
        "next": asked.query(after=str(rows.rows[-1].uuid)) if rows.has_next else "",
        "close": _close(palace, asked) if "after" not in request.GET else [],
        "goes_on": "after" in request.GET,
        "tabs": _tabs(asked),
        "states": STATES.items(),
        "clocks": CLOCKS.items(),
        "categories": CATEGORIES,
        # Over nothing there is nothing to search; what is hidden may be found.
        "has_facts": bool(rows.rows) or Fact.objects.within(palace).exists(),
    }
    status = 400 if asked.error else 200
    return render_page_or_part(request, "palace/facts.html", "rows", context, status=status)


def _close(palace: Palace, asked: FactFilter) -> list[Fact]:
    """Facts without the words, but close to them in meaning."""
    if not asked.words:
        return []
    others = asked.without_words().facts(palace).exclude(pk__in=asked.facts(palace).values("pk"))
    close = close_in_meaning(palace, asked.words, others, at_most=CLOSE_SHOWN)
    add_quotes(palace, close)
    return close


@signed_in_page
def fact_detail(request: PageRequest, memory: UUID) -> HttpResponse:
    """One memory: its versions, their sources, and its history."""
    return show_fact(request, memory)


def show_fact(request: PageRequest, memory: UUID, **form: Any) -> HttpResponse:
    """The page of a fact; after a refused form with its `error` or `conflict`.

    Args:
        form: What `_fact_care.html` needs beside the fact: the open form `do`, its fields, errors.

    Raises:
        Http404: there is no such memory in this palace.
    """
    palace = Palace.objects.own(request.user)
    versions = _versions(palace, memory)
    active = next((fact for fact in versions if fact.retired_at is None), None)
    shown = active or versions[-1]
    context = {
        "fact": shown,
        "active": active,
        "versions": versions,
        "arc": _arc(palace, shown),
        "proposals": _waiting(palace, memory),
        "events": list(map(change_lines, history(palace, memory)[-EVENTS_SHOWN:])),
        "in_its_place": _in_its_place(palace, shown) if form.get("conflict") else None,
        **form,
    }
    bad = "error" in form or "conflict" in form
    status = 400 if bad else 200
    return render_page_or_part(request, "palace/fact_detail.html", "fact", context, status=status)


def _waiting(palace: Palace, memory: UUID) -> list[Proposal]:
    """Proposals about this memory that can be decided on."""
    rows = Fact.objects.within(palace).active().filter(memory=memory)
    waiting = Proposal.objects.within(palace).waiting()
    return list(waiting.filter(about__palace=palace, about__fact__in=rows).distinct())


def _behind(palace: Palace, found: FactQuerySet, uuid: str) -> FactQuerySet:
    """The facts after one in the order of the list; all if there is no such fact."""
    mark = find_by_uuid(Fact.objects.within(palace), uuid)
    if mark is None:
        return found
    same = Q(recorded_at=mark.recorded_at, pk__lt=mark.pk)
    return found.filter(Q(recorded_at__lt=mark.recorded_at) | same)


def _tabs(asked: FactFilter) -> list[tuple[str, str, bool]]:
    """Label, query string, and whether it is the current one."""
    named = [("", "All"), *((str(name), label) for name, label in TYPES.items())]
    return [(label, asked.of_type(name).query(), name == asked.type) for name, label in named]


def _versions(palace: Palace, memory: UUID) -> list[Fact]:
    """The latest versions, oldest first.

    Raises:
        Http404: there is no such memory in this palace.
    """
    rows = Fact.objects.within(palace).filter(memory=memory)
    named = rows.select_related("subject", "object_entity")
    latest = list(named.order_by("-recorded_at", "-pk")[:VERSIONS_SHOWN])
    if not latest:
        raise Http404
    add_quotes(palace, latest, at_most=WORDS_SHOWN)
    return latest[::-1]


def _arc(palace: Palace, fact: Fact) -> OpinionTimeline | None:
    """All opinions on the subject that were ever true; None unless there are several."""
    if fact.type != Fact.Type.OPINION:
        return None
    matter = Fact.objects.within(palace).filter(
        EVER_TRUE,
        type=fact.type,
        subject=fact.subject_id,
        predicate=fact.predicate,
        agent=fact.agent,
        run=fact.run,
    )
    latest = list(matter.order_by("-recorded_at", "-pk")[:OPINIONS_SHOWN])
    if len(latest) < 2:
        return None
    in_time = sorted(latest, key=lambda one: (one.aspect, one.valid_from or one.recorded_at))
    return timeline_of(in_time, timezone.now())


def _in_its_place(palace: Palace, fact: Fact) -> Fact | None:
    """The active fact in its place, if the predicate has one value at a time."""
    active = Fact.objects.within(palace).active().exclude(memory=fact.memory)
    return active.filter(
        subject=fact.subject_id,
        predicate=fact.predicate,
        aspect=fact.aspect,
        agent=fact.agent,
        run=fact.run,
        single=True,
    ).first()


# In the drawing's units: pixels of a phone.
WIDTH = 344.0
LANE_HEIGHT = 58.0
# The width of a stance's sign, and how many fit on a lane.
NARROWEST = 22.0
MOST_STANCES = 12

SIGNS = {"positive": "+", "negative": "−", "mixed": "±", "neutral": "○"}


@dataclass(frozen=True, slots=True)
class Stance:
    """One opinion on its lane, which starts at `x`."""

    fact: Fact
    x: float
    width: float

    @property
    def sign(self) -> str:
        return SIGNS.get(self.fact.stance, "·")

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)

    @property
    def kind(self) -> str:
        return self.fact.stance if self.fact.stance in SIGNS else "unsaid"


@dataclass(frozen=True, slots=True)
class Lane:
    """
    Attributes:
        aspect: Empty for opinions on the subject as a whole.
        left_out: The number of earlier stances that did not fit.
    """

    aspect: str
    top: float
    stances: tuple[Stance, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class OpinionTimeline:
    """
    Attributes:
        since: When the drawing begins; None if no day is known.
    """

    lanes: tuple[Lane, ...]
    since: datetime | None
    width: float = WIDTH

    @property
    def height(self) -> float:
        return len(self.lanes) * LANE_HEIGHT


def timeline_of(facts: Sequence[Fact], now: datetime) -> OpinionTimeline:
    """The lanes of opinions on one matter.

    Args:
        facts: By aspect, and within one in order of time.
    """
    known = [fact.valid_from for fact in facts if fact.valid_from]
    since = min(known, default=None)
    start = min(since or now, now)
    lanes = []
    for number, (aspect, group) in enumerate(groupby(facts, key=lambda fact: fact.aspect)):
        opinions = list(group)
        stances = _stances(opinions[-MOST_STANCES:], start, now)
        top = number * LANE_HEIGHT
        lanes.append(Lane(aspect, top, stances, max(len(opinions) - MOST_STANCES, 0)))
    return OpinionTimeline(tuple(lanes), since)


def _stances(facts: Sequence[Fact], start: datetime, now: datetime) -> tuple[Stance, ...]:
    begins = _apart([_x(fact.valid_from or start, start, now) for fact in facts])
    stances = []
    for number, fact in enumerate(facts):
        limit = begins[number + 1] if number + 1 < len(facts) else WIDTH
        end = _x(fact.valid_to, start, now) if fact.valid_to else limit
        width = min(max(end - begins[number], NARROWEST), limit - begins[number])
        stances.append(Stance(fact, round(begins[number], 1), round(width - 2, 1)))
    return tuple(stances)


def _x(moment: datetime, start: datetime, now: datetime) -> float:
    span = (now - start).total_seconds() or 1.0
    share = (moment - start).total_seconds() / span
    return min(max(share, 0.0), 1.0) * WIDTH


def _apart(begins: Sequence[float]) -> list[float]:
    """Push each to the right until its sign fits, then back from the right end."""
    pushed: list[float] = []
    for x in begins:
        pushed.append(max(x, pushed[-1] + NARROWEST) if pushed else x)
    limit = WIDTH
    for number in range(len(pushed) - 1, -1, -1):
        limit -= NARROWEST
        pushed[number] = min(pushed[number], limit)
        limit = pushed[number]
    return pushed
