"""Filters and tags that format text, places, times, numbers and facts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from html import escape

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime

from language.english.grammatical_person import to_second_person
from palace.curation.trash import Contents
from palace.models import TAGS, Closet, Drawer, Entity, Fact, FactEvent, Room, Wing, format_tags
from palace.queries.facts import Quoted
from palace.queries.floor_plan import PlanRoom
from settings_app.row_tags import MONTHS, counted, day_of

register = template.Library()

EXCERPT_LENGTH = 150
# The lines before and after a block of code, in Markdown.
_FENCES = re.compile(r"^ {0,3}(?:`{3,}[^`\n]*|~{3,}[^\n]*)$", re.MULTILINE)
ROLES = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}

SOURCES = {
    "chat": "a chat here",
    "chatgpt": "ChatGPT",
    "claude": "Claude",
    "gemini": "Gemini",
    "loci": "another Loci",
    "markdown": "Markdown",
    "plain": "a plain file",
    "sample": "the sample palace",
    "slack": "Slack",
}

# The words of the palace, each in a sentence.
EXPLANATIONS = {
    "wing": "A wing holds all conversations about one person, project or topic.",
    "room": "A room is one conversation within its wing, from its first day to its last.",
    "closet": "A closet is one topic that came up in the conversation of its room.",
    "drawer": "A drawer holds one message, word for word as it was said.",
    "pointer": "A pointer is a drawer’s address: wing, room and drawer by their numbers. Paste it "
    "into the search to come back.",
    "tag": "Tags sum up a message: @p people, @l places, @e events, @i things, @t time. They "
    "help programs and models to scan many messages.",
}


@register.filter
def verbatim_text(text: str) -> SafeString:
    """Escape the text so that a browser keeps exactly its characters.

    Browsers turn a raw carriage return into a line feed, but keep a character reference.
    """
    escaped = conditional_escape(text).replace("\r", "&#13;")
    return mark_safe(escaped)  # noqa: S308 - escaped the line before.


@register.filter
def marked(snippet: Sequence[tuple[str, bool]]) -> SafeString:
    """A snippet with the question's words marked."""
    pieces = ((escape(piece), matches) for piece, matches in snippet)
    return mark_safe(  # noqa: S308 - escaped the line before.
        "".join(f"<mark>{piece}</mark>" if matches else piece for piece, matches in pieces)
    )


@register.filter
def excerpt(text: str) -> str:
    """The beginning of `text` on one line, cut between words; without the fences of code."""
    line = " ".join(_FENCES.sub("", text).split())
    if len(line) > EXCERPT_LENGTH:
        # The dots stay on the line of the last word.
        line = line[:EXCERPT_LENGTH].rsplit(" ", 1)[0] + "\u00a0…"
    return line or "(nothing visible)"


@register.filter
def listed(contents: Contents) -> str:
    """`3 conversations, 214 messages, 12 facts`; without what there is none of."""
    numbers = (
        (contents.conversations, "conversation"),
        (contents.messages, "message"),
        (contents.facts, "fact"),
    )
    return ", ".join(counted(number, noun) for number, noun in numbers if number)


@register.filter
def until_purged(days: int) -> str:
    """The days left in the trash, in words."""
    return f"{counted(days, 'day')} left" if days else "to be deleted today"


@register.filter
def said_by(drawer: Drawer | Quoted) -> str:
    return speaker_or_role(drawer.speaker, drawer.role)


def speaker_or_role(speaker: str, role: str) -> str:
    return speaker or ROLES.get(role, role.capitalize())


@register.filter
def source_name(source: str) -> str:
    return SOURCES.get(source, source)


@register.filter
def days(room: Room) -> str:
    """The days of a conversation: `3 Mar 2025`, or `28 Feb – 2 Mar 2025`."""
    start, end = localtime(room.started_at), localtime(room.ended_at)
    last = f"{end.day} {MONTHS[end.month - 1]} {end.year:04}"
    if start.date() == end.date():
        return last
    if start.year != end.year:
        return f"{start.day} {MONTHS[start.month - 1]} {start.year:04} – {last}"
    if start.month != end.month:
        return f"{start.day} {MONTHS[start.month - 1]} – {last}"
    return f"{start.day}–{last}"


@register.filter
def aaak_tags(drawer: Drawer) -> str:
    return format_tags(drawer.tags)


@register.filter
def named_tags(drawer: Drawer) -> list[tuple[str, str, list[str]]]:
    """Letter, name and values of each tag that has values."""
    return [
        (letter, name.capitalize(), drawer.tags[letter])
        for letter, name in TAGS.items()
        if drawer.tags.get(letter)
    ]


@register.filter
def room_pointer(room: Room) -> str:
    return f"§ W-{room.wing.number:03}/R-{room.number:02}"


@register.simple_tag
@cache  # A page has up to a hundred, of the forty that there are.
def icon(name: str) -> SafeString:
    """An icon of the sprite sheet; the text beside it says the same."""
    return format_html(
        '<svg class="icon" width="20" height="20" aria-hidden="true">'
        '<use href="{}#{}"></use></svg>',
        static("icons.svg"),
        name,
    )


@register.simple_tag
def plan_room(room: PlanRoom, width: int) -> SafeString:
    """One room of the floor plan, in one piece: a page has up to a hundred and fifty.

    Its name is its title, which browsers also show on hovering.
    """
    said = "later" if room.is_later else counted(room.drawers, "message")
    name = [room.room.title, days(room.room), said]
    name += [counted(room.facts, "fact")] if room.facts else []
    name += [f"hit {' and '.join(map(str, room.pins))}"] if room.pins else []
    classes = f"age-{room.age}{' later' * room.is_later}{' lit' * bool(room.pins)}"
    x, y = room.centre
    mark = ""
    if room.pins:
        mark = f'<text x="{x}" y="{y}" dy=".35em">{room.pins[0]}</text>'
    elif room.facts:
        mark = f'<circle cx="{x}" cy="{y}" r="3"/>'
    wall = f'<rect x="{room.x}" y="{room.y}" width="{width}" height="{room.depth}"/>{mark}'
    return format_html(
        '<g role="listitem"><a href="{}" class="plan-room {}"><title>{}</title>{}</a></g>',
        *(room.room.get_absolute_url(), classes, ", ".join(name)),
        mark_safe(wall),  # noqa: S308 - nothing but numbers.
    )


@register.inclusion_tag("palace/_explain.html")
def explain(word: str) -> dict[str, str]:
    """A button that opens the sentence about a word of the palace."""
    return {"word": word, "sentence": EXPLANATIONS[word]}


@register.inclusion_tag("palace/_trail.html")
def trail(place: Wing | Room | Closet | Drawer | None = None) -> dict[str, object]:
    """Breadcrumbs from the palace to `place`, without `place` itself unless it is a wing.

    The pages of a wing and of the whole palace pass no place.
    """
    if place is None:
        return {}
    if isinstance(place, Wing):
        return {"wing": place}
    if isinstance(place, Room):
        return {"wing": place.wing}
    if isinstance(place, Closet):
        return {"wing": place.room.wing, "room": place.room}
    return {"wing": place.room.wing, "room": place.room, "closet": place.closet}


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
    """When it was true: `since 3 May 2024`, `3 May 2024 – 1 June 2025`; empty if unknown.

    Of facts that were said by a day, without the ends that were said later.
    """
    start, end = fact.valid_from, getattr(fact, "end_by_then", fact.valid_to)
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
