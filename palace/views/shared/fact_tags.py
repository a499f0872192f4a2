"""Filters that format facts: predicates, times, and who changed them."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.timezone import localtime

from language.english.grammatical_person import to_second_person
from palace.models import Entity, Fact, FactEvent
from settings_app.row_tags import day_of

register = template.Library()

KINDS = {
    Entity.Kind.PERSON: "People",
    Entity.Kind.PLACE: "Places",
    Entity.Kind.ORGANISATION: "Organisations",
    Entity.Kind.PROJECT: "Projects",
    Entity.Kind.EVENT: "Events",
    Entity.Kind.ITEM: "Things",
}
TYPES = {
    Fact.Type.FACT: "Facts",
    Fact.Type.PREFERENCE: "Preferences",
    Fact.Type.OPINION: "Opinions",
    Fact.Type.EVENT: "Events",
}
# Other sources are shown by their own names.
DOERS = {
    "mining": "Loci, reading what was said",
    "chat": "Loci, reading what was said",
    "person": "you",
    "trash": "the trash",
    "api": "a program",
    "sdk": "a program",
}
# What the local rules give as reason where there is no other.
REPEATING = ("new fact", "it has changed")
CHANGES = {
    FactEvent.Kind.ADD: "Learnt",
    FactEvent.Kind.UPDATE: "Changed",
    FactEvent.Kind.DELETE: "Dropped",
}


@register.filter
def in_words(name: str) -> str:
    """`lives_in` as people write it."""
    return name.replace("_", " ")


@register.filter
def second_person(sentence: str) -> str:
    """A fact's text for its reader: "You live in Porto"."""
    return to_second_person(sentence)


@register.filter
def category(fact: Fact) -> str:
    """Its category; empty where it only repeats the type, such as a preference in `preferences`."""
    return "" if fact.category == f"{fact.type}s" else fact.category


@register.filter
def path(category: str) -> str:
    """`home/pets` with spaces around the slash."""
    return category.replace("/", " / ")


@register.filter
def kind_name(kind: str) -> str:
    """The kind for readers; an item in the table is a thing."""
    return "thing" if kind == Entity.Kind.ITEM else kind


@register.filter
def done_by(event: FactEvent) -> str:
    return DOERS.get(event.by, event.by)


@register.filter
def change(event: FactEvent) -> str:
    return CHANGES[FactEvent.Kind(event.event)]


@register.filter
def reason(event: FactEvent) -> str:
    """Why, as a sentence without its full stop; empty where it only repeats `change`."""
    return "" if event.why in REPEATING else event.why[:1].upper() + event.why[1:]


@register.filter
def day(moment: datetime) -> str:
    return day_of(localtime(moment))


@register.filter
def period(fact: Fact) -> str:
    """When it was true: `since 3 May 2024`, `3 May 2024 – 1 June 2025`; empty if unknown."""
    start, end = fact.valid_from, fact.valid_to
    if start and end:
        first, last = day(start), day(end)
        return first if first == last else f"{first} – {last}"
    if start and fact.type == Fact.Type.EVENT:
        return day(start)
    if start:
        return f"{'from' if start > timezone.now() else 'since'} {day(start)}"
    return f"until {day(end)}" if end else ""


@register.filter
def is_over(fact: Fact) -> bool:
    """Whether an active fact's period has ended; events do not count."""
    ends = fact.valid_to
    lasts = fact.retired_at is None and fact.type != Fact.Type.EVENT
    return lasts and ends is not None and ends <= timezone.now()


@register.filter
def certainty(fact: Fact) -> str:
    """The confidence of its extraction: `80 %`."""
    return f"{round(fact.confidence * 100)} %"
