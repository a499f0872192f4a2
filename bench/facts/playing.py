"""Run scenarios through the production code, each in its own palace."""

from __future__ import annotations

from datetime import UTC, date, datetime

from django.contrib.auth import get_user_model

from bench.facts.scenarios import Message, Scenario
from bench.facts.scoring import Found
from language.transcripts import Turn
from palace.knowledge.facts import remember
from palace.models import Fact, Palace
from settings_app.models import MemorySettings


def choose_model(*, with_model: bool) -> None:
    """Extract facts by the local rules, ignoring the operator's model, unless requested."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    provider = MemorySettings.OF_THIS_SERVER if with_model else MemorySettings.NO_MODEL
    MemorySettings.objects.update_or_create(owner=owner, defaults={"provider": provider})


def play(scenario: Scenario) -> list[Found]:
    """Tell it call by call, and give all its facts: those that are held and those retired.

    Call it once per scenario: the second time everything would be a repetition.
    """
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    palace, _ = Palace.objects.get_or_create(owner=owner, subject=scenario.id)
    for messages in scenario.calls():
        remember(palace, [_turn(at, message) for at, message in enumerate(messages)])
    facts = Fact.objects.within(palace).select_related("subject").order_by("pk")
    return [_found(fact) for fact in facts]


def _turn(at: int, message: Message) -> Turn:
    return Turn(str(at), message.role, message.text, message.said_at, message.speaker)


def _found(fact: Fact) -> Found:
    return Found(
        subject=fact.subject.name,
        predicate=fact.predicate,
        object=fact.object,
        text=fact.text,
        aspect=fact.aspect,
        stance=fact.stance,
        valid_from=_day(fact.valid_from),
        valid_to=_day(fact.valid_to),
        fate=fact.fate,
    )


def _day(moment: datetime | None) -> date | None:
    return moment.astimezone(UTC).date() if moment else None
