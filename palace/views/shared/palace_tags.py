"""Filters and tags that format text, places, times and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape

from django import template
from django.templatetags.static import static
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime

from palace.curation.trash import Contents
from palace.models import TAGS, Closet, Drawer, Room, Wing, format_tags
from palace.queries.floor_plan import PlanRoom
from settings_app.row_tags import MONTHS, counted

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
def said_by(drawer: Drawer) -> str:
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
