"""Entities: the list by kind, and one entity with its facts, connections and mentions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.html import format_html
from django.utils.safestring import SafeString

from isolation.raw_sql import fetch_rows
from language.storable import storable_label
from palace.models import Entity, Fact, FactQuerySet, Mention, Palace, Pointer
from palace.queries.facts import add_quotes, named_like
from palace.queries.timeline import (
    Naming,
    facts_of_day,
    happenings,
    histogram,
    messages_by_month,
    naming,
)
from palace.views.entities.connections import connections_of
from palace.views.shared.moments import rows_until, story_page
from palace.views.shared.palace_tags import KINDS, speaker_or_role
from palace.views.shared.query_params import (
    ChosenDay,
    NumberedPage,
    UncountedPage,
    find_by_uuid,
    query_string,
)
from settings_app.fast_reverse import address_of
from settings_app.pages import PageRequest, render_page_or_part, signed_in_page, wants_part
from settings_app.row_tags import at_minute

# Characters shown before the name, and in all.
LEAD = 90
AROUND = 300
# How many entities of each kind the page of all kinds shows.
OF_A_KIND = 12
KNOWN_SHOWN = 16
MENTIONS_SIZE = 15


@dataclass(frozen=True, slots=True)
class EntityRow:
    """
    Attributes:
        facts: How many active facts have it as subject or object.
        mentions: The number of mentions.
    """

    entity: Entity
    facts: int
    mentions: int


@dataclass(frozen=True, slots=True)
class KindGroup:
    kind: str
    name: str
    rows: list[EntityRow]
    has_more: bool


@signed_in_page
def entities(request: PageRequest) -> HttpResponse:
    """By kind; `?kind=` filters by kind, `?q=` by name, `?after=` is the cursor."""
    palace = Palace.objects.own(request.user)
    words, kind = storable_label(request.GET.get("q", "")), request.GET.get("kind", "")
    kind = kind if kind in Entity.Kind else ""
    context: dict[str, Any] = {"words": words, "kind": kind, "tabs": _tabs(words, kind)}
    if words or kind:
        context |= _listed(palace, words, kind, request.GET.get("after", ""))
    else:
        context["kinds"] = _overview(palace)
    return render_page_or_part(request, "palace/entities.html", "rows", context)


@signed_in_page
def entity_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    """One entity, as known today or `?as_of=` a day."""
    palace = Palace.objects.own(request.user)
    entity = get_object_or_404(Entity, palace=palace, uuid=uuid)
    entity.palace = palace  # Else it would be read once more.
    lists = {"story": _story, "mentions": _mentions}
    wanted = next((name for name in lists if name in request.GET), "about")
    named = naming(
        entity,
        talks=rows_until(request.GET.get("story")),
        latest=rows_until(request.GET.get("mentions"), MENTIONS_SIZE),
    )
    if wants_part(request) and wanted in lists:
        # The next rows of one list need no other part of the page.
        context = {"entity": entity, **lists[wanted](palace, entity, named, request.GET[wanted])}
        return render_page_or_part(request, "palace/entity_detail.html", wanted, context)
    context = _about(palace, entity, ChosenDay.read(request.GET, "as_of", default="true"), named)
    for name, rows_of in lists.items():
        context |= rows_of(palace, entity, named, request.GET.get(name))
    status = 400 if context["chosen"].error else 200
    return render_page_or_part(
        request, "palace/entity_detail.html", "about", context, status=status
    )


def _about(palace: Palace, entity: Entity, chosen: ChosenDay, named: Naming) -> dict[str, Any]:
    facts = Fact.objects.within(palace).active()
    if chosen.moment:
        facts = facts_of_day(palace, chosen.moment, chosen.basis)
    # Nobody calls the owner of the palace by name.
    months = named.months or messages_by_month(palace)
    address = entity.get_absolute_url()
    same_day = query_string(as_of=str(chosen.day), basis=chosen.basis) if chosen.day else ""
    return {
        "entity": entity,
        "chosen": chosen,
        "query": same_day,
        "histogram": histogram(months, chosen.day),
        "action": address,
        "today": address,
        "known": _known(palace, entity, facts),
        "connections": connections_of(entity, facts, query=same_day),
    }


def _tabs(words: str, kind: str) -> list[tuple[str, str, bool]]:
    """Label, query string, and whether it is the current one."""
    named = [("", "All"), *((str(name), label) for name, label in KINDS.items())]
    return [(label, query_string(q=words, kind=name) or "?", name == kind) for name, label in named]


def _listed(palace: Palace, words: str, kind: str, after: str) -> dict[str, Any]:
    """Entities of a name or kind, by kind and slug, which an index supports."""
    found = _behind(palace, _named(palace, words, kind), after)
    rows = UncountedPage(found.order_by("kind", "slug"))
    following = str(rows.rows[-1].uuid) if rows.has_next else ""
    return {
        "rows": entity_rows(palace, rows.rows),
        "next": query_string(q=words, kind=kind, after=following) if following else "",
        "goes_on": bool(after),
    }


def _named(palace: Palace, words: str, kind: str) -> QuerySet[Entity]:
    kinds = [kind] if kind else Entity.Kind.values
    return Entity.objects.filter(named_like(words), palace=palace, kind__in=kinds)


def _behind(palace: Palace, found: QuerySet[Entity], uuid: str) -> QuerySet[Entity]:
    mark = find_by_uuid(Entity.objects.filter(palace=palace), uuid)
    if mark is None:
        return found
    return found.filter(Q(kind__gt=mark.kind) | Q(kind=mark.kind, slug__gt=mark.slug))


def _overview(palace: Palace) -> list[KindGroup]:
    """The first entities of each kind."""
    named = Entity.objects.filter(palace=palace).order_by("slug")
    first, *others = [named.filter(kind=kind)[: OF_A_KIND + 1] for kind in KINDS]
    found = list(first.union(*others, all=True))
    rows = entity_rows(palace, found)
    by_kind = {kind: [row for row in rows if row.entity.kind == kind] for kind in KINDS}
    return [
        KindGroup(str(kind), KINDS[kind], listed[:OF_A_KIND], len(listed) > OF_A_KIND)
        for kind, listed in by_kind.items()
        if listed
    ]


def entity_rows(palace: Palace, listed: Sequence[Entity]) -> list[EntityRow]:
    """The entities with their counts, in four queries."""
    facts = Fact.objects.within(palace).active().order_by()
    about = _counts(facts.filter(subject__in=listed).values_list("subject"))
    ending = _counts(
        facts.filter(object_entity__in=listed)
        .exclude(subject=F("object_entity"))
        .values_list("object_entity")
    )
    named = _kept_mentions(palace, listed)
    return [
        EntityRow(one, about.get(one.pk, 0) + ending.get(one.pk, 0), named.get(one.pk, 0))
        for one in listed
    ]


def _kept_mentions(palace: Palace, listed: Sequence[Entity]) -> dict[int, int]:
    """All mentions less those in the trash, which are few: so no kept drawer need be read."""
    mentions = Mention.objects.filter(palace=palace, entity__in=listed).order_by()
    every = _counts(mentions.values_list("entity"))
    trashed = _counts(mentions.filter(drawer__trashed_at__isnull=False).values_list("entity"))
    return {key: every[key] - trashed.get(key, 0) for key in every}


def _counts(grouped: QuerySet[Any, Any]) -> dict[int, int]:
    return dict(grouped.annotate(Count("pk")))


def _known(palace: Palace, entity: Entity, facts: FactQuerySet) -> UncountedPage[Fact]:
    """Lasting facts about it; those with one value at a time come first.

    Events are in the timeline.
    """
    lasting = facts.filter(subject=entity).exclude(type=Fact.Type.EVENT)
    known = UncountedPage(lasting.order_by("-single", "-recorded_at", "-pk"), size=KNOWN_SHOWN)
    add_quotes(palace, known.rows)
    return known


def _story(palace: Palace, entity: Entity, named: Naming, number: str | None) -> dict[str, Any]:
    """Conversations, and facts that begin and end, the latest first, by year."""
    found = happenings(entity, named.talks, at_most=rows_until(number))
    return story_page(palace, found, number)


def _mentions(_palace: Palace, entity: Entity, named: Naming, number: str | None) -> dict[str, Any]:
    listed = NumberedPage(named.latest, number, size=MENTIONS_SIZE)
    return {"mentions": listed, "mentioned": mention_rows(entity, listed.rows)}


@dataclass(frozen=True, slots=True)
class MentionRow:
    """The words before the name, the name as it was written, and those after it.

    Attributes:
        uuid: The drawer's.
    """

    uuid: UUID
    said_by: str
    said_at: datetime
    pointer: Pointer
    before: str
    name: str
    after: str
    url: str

    @property
    def item(self) -> SafeString:
        """Its place in the list, in one piece."""
        return format_html(
            '<li>\n<a class="leaf-who" href="{}">{}, {}</a>\n'
            '<p class="mention-words">{}<mark>{}</mark>{}</p>\n'
            '<span class="aaak"><span class="pointer">{}</span></span>\n</li>\n',
            *(self.url, self.said_by, at_minute(self.said_at)),
            *(self.before, self.name, self.after, self.pointer),
        )


_FIRST_WORD = re.compile(r"^\S*\s+")
_LAST_WORD = re.compile(r"\s+\S*$")
# Each drawer's first mention of the entity, with the words around it.
_FIRST_MENTIONS = """
SELECT DISTINCT ON (drawer.id) drawer.id, drawer.uuid, drawer.speaker, drawer.role, drawer.said_at,
    wing.number, room.number, drawer.number, mention.start, mention."end",
    substring(drawer.text FROM greatest(mention.start - %(lead)s, 0) + 1 FOR %(around)s)
FROM palace_mention mention
JOIN palace_drawer drawer ON drawer.palace_id = %(palace)s AND drawer.id = mention.drawer_id
JOIN palace_room room ON room.palace_id = %(palace)s AND room.id = drawer.room_id
JOIN palace_wing wing ON wing.palace_id = %(palace)s AND wing.id = room.wing_id
WHERE mention.palace_id = %(palace)s AND mention.entity_id = %(entity)s
    AND mention.drawer_id = ANY(%(drawers)s)
ORDER BY drawer.id, mention.start
"""


def mention_rows(
    entity: Entity, drawers: Sequence[int], *, around: int = AROUND
) -> list[MentionRow]:
    """The first mention in each of these drawers, in one query.

    Args:
        drawers: Their keys.
        around: At most so many characters of a message are shown.
    """
    parameters: dict[str, int | list[int]] = {
        "palace": entity.palace_id,
        "entity": entity.pk,
        "drawers": list(drawers),
        "lead": LEAD,
        "around": around,
    }
    rows = fetch_rows(_FIRST_MENTIONS, parameters, prepared=True)
    by_drawer = {key: _row(*rest, most=around) for key, *rest in rows}
    return [by_drawer[key] for key in drawers if key in by_drawer]


def _row(
    uuid: UUID,
    speaker: str,
    role: str,
    said_at: datetime,
    wing: int,
    room: int,
    drawer: int,
    start: int,
    end: int,
    around: str,
    *,
    most: int,
) -> MentionRow:
    begins = max(start - LEAD, 0)
    before, after = around[: start - begins], around[end - begins :]
    # Cut between words; the dots stay on the line of the word beside them.
    if begins:
        before = "…\u00a0" + _FIRST_WORD.sub("", before)
    if len(around) == most:
        after = _LAST_WORD.sub("", after) + "\u00a0…"
    return MentionRow(
        uuid,
        speaker_or_role(speaker, role),
        said_at,
        Pointer(wing, room, drawer),
        before,
        around[start - begins : end - begins],
        after,
        f"{address_of('drawer_detail', uuid)}?passage={start}-{end}#passage",
    )
