"""Filters and tags that format text, places, times, numbers and facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from functools import cache
from html import escape
from urllib.parse import quote

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime

from language.english.grammatical_person import to_second_person
from language.facts import SURE
from palace.curation.trash import Contents
from palace.models import TAGS, Closet, Drawer, Entity, Fact, Room, Wing, format_tags
from palace.queries.facts import Quoted
from settings_app.fast_reverse import address_of
from settings_app.row_tags import MONTHS, counted, day_of, on_day, shortened

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
    "tag": "Tags sum up a message: @p people and pets, @l places, @e events, @i things, @t time. "
    "They help programs and models to scan many messages.",
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
    return days_in(room, timezone.get_current_timezone())


def days_in(room: Room, zone: tzinfo) -> str:
    start, end = room.started_at.astimezone(zone), room.ended_at.astimezone(zone)
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
    Entity.Kind.PET: "Pets",
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
def is_unsure(fact: Fact) -> bool:
    """Whether an active fact is not recalled, because it is not sure enough."""
    return fact.retired_at is None and fact.confidence < SURE


@register.filter
def certainty(fact: Fact) -> str:
    """The confidence of its extraction: `80 %`."""
    return f"{round(fact.confidence * 100)} %"


_TYPES, _FATES = dict(Fact.Type.choices), dict(Fact.Fate.choices)


@register.simple_tag
def fact_item(
    fact: Fact,
    entity: Entity | None = None,
    *,
    can_select: bool = False,
    brief: bool = False,
) -> SafeString:
    """A fact in a list, in one piece: a page has thirty.

    Args:
        entity: Whose page it is, which needs not be named.
        brief: Without the words that it rests on.
    """
    text = second_person(fact.text)
    version = f"#version-{fact.uuid}" if fact.retired_at else ""
    edit = f' data-edit="{address_of("correct_fact", fact.memory)}?do=edit"'
    pick = (
        f'\n<input class="pick" form="selected" type="checkbox" name="fact" value="{fact.memory}"'
        f' aria-label="Select: {escape(shortened(text, 120))}">'
    )
    return mark_safe(  # noqa: S308 - its parts are escaped.
        f'<li class="fact{" dropped" * bool(fact.retired_at)}"{edit * (not fact.retired_at)}>\n'
        f'<p class="fact-text"><a href="{fact.get_absolute_url()}{version}">{escape(text)}</a></p>'
        f'\n<p class="fact-meta">{" ".join(_fact_meta(fact, entity))}</p>'
        f"{'' if brief else fact_words(fact)}{pick * (can_select and not fact.retired_at)}</li>\n"
    )


def _fact_meta(fact: Fact, entity: Entity | None) -> Iterator[str]:
    """The line below its text."""
    yield f"{icon(fact.type)}<span>{_TYPES.get(fact.type, fact.type)}</span>"
    if entity is None or fact.subject_id != entity.pk:
        yield (
            f'<a href="{fact.subject.get_absolute_url()}"><span class="unseen">about </span>'
            f"{escape(fact.subject.display_name)}</a>"
        )
    if category(fact):
        address = f"{address_of('facts')}?category={quote(fact.category, safe='')}"
        named = escape(path(fact.category))
        yield f'<a href="{address}"><span class="unseen">in </span>{named}</a>'
    if since := period(fact):
        yield f"<span>{since}</span>"
    if fact.retired_at:
        yield f'<span class="fate">{_FATES.get(fact.fate, fact.fate)}</span>'
    elif is_over(fact):
        yield '<span class="fate">ended</span>'
    elif is_unsure(fact):
        yield '<span class="fate">not sure</span>'


@register.filter
def fact_words(fact: Fact) -> SafeString:
    """The quotes that a fact rests on, of those that were read with it."""
    shown: Sequence[Quoted] = getattr(fact, "shown", ())
    return mark_safe("".join(map(_quote, shown)))  # noqa: S308 - the words are escaped.


def _quote(one: Quoted) -> str:
    drawer = address_of("drawer_detail", one.drawer)
    if one.trashed_at:
        said = f'<span class="muted">Words in <a href="{drawer}">a drawer in the trash</a></span>'
    else:
        place = f"{drawer}?passage={one.start}-{one.end}#text"
        by = f"{escape(said_by(one))}, {on_day(one.said_at)}"
        said = f'<q>{verbatim_text(one.words)}</q> <a class="words-by" href="{place}">{by}</a>'
    return f'\n<p class="fact-words">{said}</p>'
