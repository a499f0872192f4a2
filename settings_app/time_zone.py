"""The user's time zone, for times on pages; UTC by default."""

from __future__ import annotations

from datetime import tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

# The other names are old, or no places.
REGIONS = frozenset(
    "Africa America Antarctica Arctic Asia Atlantic Australia Europe Indian Pacific".split()
)


class TimeZoneMiddleware(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> None:
        # At the start of every request, so that none has another's; not undone at its end,
        # because a streamed response is still being written then.
        chosen = getattr(request.user, "memory_settings", None)
        timezone.activate(zone_named(chosen.time_zone if chosen else ""))


def zone_named(name: str) -> tzinfo:
    """The time zone of this name; UTC if it is empty or no longer exists."""
    return ZoneInfo(name) if name in zone_names() else timezone.get_default_timezone()


@cache
def zone_names() -> frozenset[str]:
    """All time zones of this machine, by IANA name, such as `Europe/Berlin`."""
    return frozenset(name for name in available_timezones() if name.split("/")[0] in REGIONS)


@cache
def grouped_zones() -> list[tuple[str, list[tuple[str, str]]]]:
    """For a select: regions, each with its zones' names and how to write them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(zone_names()):
        region, place = name.split("/", 1)
        groups.setdefault(region, []).append((name, place.replace("_", " ").replace("/", ", ")))
    return sorted(groups.items())
