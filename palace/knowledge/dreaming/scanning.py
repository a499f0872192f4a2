"""What a dream looks at: facts, feedback of the last days, and messages since the last dream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max

from language.english.message_traits import corrects_assistant
from palace.knowledge.dreaming.findings import Quote
from palace.models import (
    Drawer,
    DreamMark,
    Evidence,
    ExpectedDrawer,
    Fact,
    FactEvent,
    Palace,
    RecallCase,
)
from palace.models.hierarchy import DrawerQuerySet

# A model is shown so many of the facts that were learnt last; rules go over more.
MOST_FACTS = 1000
MOST_FACTS_BY_RULES = 4000
FEEDBACK_DAYS = 7
MOST_FEEDBACK = 50
# Of what was said since the last dream, the last messages; of each so many characters.
MOST_MESSAGES = 400
SHOWN_CHARS = 1000
# Messages of these days that are looked over for corrections.
LOOKED_OVER = 2000


@dataclass(frozen=True, slots=True)
class Feedback:
    """What the user found wrong: a correction, a fact changed by hand, a search that failed."""

    kind: str
    text: str
    at: datetime
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """What the user has said since the last dream that looked for preferences.

    Attributes:
        messages: The last of them, the oldest first.
        end: How far the log goes, as `DreamMark.drawer` has it.
        passed_over: How many are too long ago to be among them.
    """

    messages: Sequence[Drawer]
    end: int
    passed_over: int = 0


def facts_to_look_at(palace: Palace, limit: int) -> list[Fact]:
    """The facts that are held, learnt last first."""
    facts = Fact.objects.within(palace).active().select_related("subject", "palace")
    return list(facts.order_by("-recorded_at", "-pk")[:limit])


def log_of(palace: Palace) -> Log:
    mark = DreamMark.objects.filter(palace=palace).values_list("drawer", flat=True).first() or 0
    said = Drawer.objects.within(palace).kept().filter(role="user", pk__gt=mark)
    end = said.aggregate(end=Max("pk"))["end"] or mark
    said = said.filter(pk__lte=end)
    last = list(said.order_by("-said_at", "-pk")[:MOST_MESSAGES])
    return Log(last[::-1], end, max(said.count() - len(last), 0))


def feedback_of(palace: Palace, now: datetime) -> list[Feedback]:
    """Of the last days, the latest first; each with the words it rests on."""
    since = now - timedelta(days=FEEDBACK_DAYS)
    found = [*_corrections(palace, since), *_by_hand(palace, since), *_failed(palace, since)]
    return sorted(found, key=lambda one: one.at, reverse=True)[:MOST_FEEDBACK]


def shown(text: str) -> str:
    """As much as a model is shown, the beginning and the end."""
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[: SHOWN_CHARS * 3 // 4]} […] {text[-SHOWN_CHARS // 4 :]}"


def facts_shown(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "text": fact.text,
            "category": fact.category,
            "tags": fact.tags,
            "since": fact.valid_from.date().isoformat() if fact.valid_from else None,
        }
        for number, fact in enumerate(facts, start=1)
    ]


def _corrections(palace: Palace, since: datetime) -> Iterator[Feedback]:
    said = Drawer.objects.within(palace).kept().filter(role="user", said_at__gte=since)
    for drawer in said.order_by("-said_at", "-pk")[:LOOKED_OVER]:
        if corrects_assistant(drawer.text[:4000]):
            whole = Quote(drawer.pk, 0, len(drawer.text))
            yield Feedback("correction", shown(drawer.text), drawer.said_at, (whole,))


def _by_hand(palace: Palace, since: datetime) -> Iterator[Feedback]:
    """Facts that a person has put in other words, or deleted, on their pages."""
    events = FactEvent.objects.filter(palace=palace, by="person", at__gte=since)
    changed = events.filter(event__in=(FactEvent.Kind.UPDATE, FactEvent.Kind.DELETE))
    for event in changed.order_by("-at", "-pk")[:MOST_FEEDBACK]:
        if not event.old_text:
            continue
        quotes = _words_of(palace, event)
        told = f"The user changed it to: {event.new_text}" if event.new_text else "It was deleted."
        if quotes:
            yield Feedback("fact", shown(f"{event.old_text} – {told}"), event.at, quotes)


def _words_of(palace: Palace, event: FactEvent) -> tuple[Quote, ...]:
    words = Evidence.objects.filter(
        palace=palace, fact__memory=event.memory, fact__palace=palace, drawer__trashed_at=None
    )
    spans = words.order_by("drawer_id", "start").values_list("drawer_id", "start", "end")
    return tuple(Quote(*span) for span in spans.distinct()[:5])


def _failed(palace: Palace, since: datetime) -> Iterator[Feedback]:
    """Searches for which what should have come did not."""
    kept: DrawerQuerySet = Drawer.objects.within(palace).kept()
    missed = ExpectedDrawer.objects.filter(palace=palace, place=None, drawer__in=kept.values("pk"))
    cases = RecallCase.objects.within(palace).filter(created_at__gte=since)
    for case in cases.filter(pk__in=missed.values("case")).order_by("-created_at")[:MOST_FEEDBACK]:
        drawers = [one.drawer for one in missed.filter(case=case).select_related("drawer")[:5]]
        quotes = tuple(Quote(drawer.pk, 0, len(drawer.text)) for drawer in drawers)
        wanted = shown(" / ".join(drawer.text for drawer in drawers))
        told = f"Searched for: {shown(case.query)} – what should have come did not: {wanted}"
        yield Feedback("search", told, case.created_at, quotes)
