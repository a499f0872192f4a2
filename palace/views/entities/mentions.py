"""The mentions of an entity, with a few words around the name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Greatest, Substr

from palace.models import Drawer, Entity, Mention

# How much is shown before the name, and of all from there on.
LEAD = 90
AROUND = 300


@dataclass(frozen=True, slots=True)
class MentionRow:
    """The words before the name, the name as it was written, and those after it."""

    drawer: Drawer
    before: str
    name: str
    after: str
    url: str


def mentions_of(entity: Entity) -> QuerySet[Mention]:
    """The first mention in each drawer outside the trash, the latest drawer first."""
    own = Mention.objects.filter(palace=entity.palace_id, entity=entity)
    earlier = Mention.objects.filter(
        palace=entity.palace_id,
        drawer=OuterRef("drawer"),
        entity=OuterRef("entity"),
        start__lt=OuterRef("start"),
    )
    shown: QuerySet[Mention] = (
        own.filter(~Exists(earlier), drawer__trashed_at=None)
        .select_related("drawer__room__wing")
        .defer("drawer__text")
        .annotate(
            begins=Greatest(F("start") - LEAD, 0),
            around=Substr("drawer__text", Greatest(F("start") - LEAD, 0) + 1, AROUND),
        )
        .order_by("-drawer__said_at", "-drawer", "start")
    )
    return shown


def mention_rows(mentions: Sequence[Any]) -> list[MentionRow]:
    """Rows of what `mentions_of` finds."""
    return [_row(mention) for mention in mentions]


def _row(mention: Any) -> MentionRow:
    around, begins = mention.around, mention.begins
    start, end = mention.start - begins, mention.end - begins
    more = len(around) == AROUND
    return MentionRow(
        mention.drawer,
        ("… " if begins else "") + around[:start],
        around[start:end],
        around[end:] + (" …" if more else ""),
        f"{mention.drawer.get_absolute_url()}?passage={mention.start}-{mention.end}#passage",
    )
