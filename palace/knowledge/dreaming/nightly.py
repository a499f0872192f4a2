"""Whose night it is: palaces that are to dream by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from palace.models import Drawer, DreamMark, Fact, Palace
from settings_app.models import MemorySettings, settings_of
from settings_app.time_zone import zone_named

# Hours of the owner's clock at which nobody is in the way.
NIGHT = range(2, 6)
# One dream a night, begun a little earlier or later than the last.
REST = timedelta(hours=20)
# Where the machine sleeps at night as well, a day is as good.
LONGEST_REST = timedelta(hours=36)


@dataclass(frozen=True, slots=True)
class Night:
    palace: Palace
    with_model: bool


def due(now: datetime) -> Iterator[Night]:
    """Palaces that are to dream now, those that have waited longest first."""
    marks = dict(DreamMark.objects.values_list("palace_id", "dreamt_at"))
    holding = Fact.objects.active().order_by().values("palace").distinct()
    palaces = list(Palace.objects.filter(pk__in=holding))
    palaces.sort(key=lambda palace: (marks.get(palace.pk) or palace.created_at, palace.pk))
    for palace in palaces:
        night = is_due(palace, now)
        if night is not None:
            yield night


def is_due(palace: Palace, now: datetime) -> Night | None:
    """None where it has dreamt lately, is told not to, or has nothing new to dream of."""
    chosen = settings_of(palace.owner_id)
    mark = DreamMark.objects.filter(palace=palace).first() or DreamMark(palace=palace)
    if chosen.dreams == MemorySettings.Dreams.OFF or not _has_rested(palace, mark, chosen, now):
        return None
    with_model = chosen.dreams == MemorySettings.Dreams.MODEL
    return Night(palace, with_model) if _has_news(palace, mark, with_model=with_model) else None


def _has_rested(palace: Palace, mark: DreamMark, chosen: MemorySettings, now: datetime) -> bool:
    rested = now - (mark.dreamt_at or palace.created_at)
    at_night = now.astimezone(zone_named(chosen.time_zone)).hour in NIGHT
    return rested >= LONGEST_REST or (rested >= REST and at_night)


def _has_news(palace: Palace, mark: DreamMark, *, with_model: bool) -> bool:
    held = Fact.objects.within(palace).active()
    if mark.dreamt_at is None or held.filter(recorded_at__gt=mark.dreamt_at).exists():
        return held.exists()
    said = Drawer.objects.within(palace).kept().filter(role="user", pk__gt=mark.drawer)
    return with_model and said.exists()
