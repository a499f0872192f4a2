"""Times are shown in the user's own time zone; who has chosen none sees UTC."""

from __future__ import annotations

from datetime import tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

# The rest of the names are old ones, or no place.
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
    """UTC where the name is empty, or no longer that of a zone."""
    return ZoneInfo(name) if name in zone_names() else timezone.get_default_timezone()


@cache
def zone_names() -> frozenset[str]:
    """Every place this machine knows the time of, by its IANA name, such as `Europe/Berlin`."""
    return frozenset(name for name in available_timezones() if name.split("/")[0] in REGIONS)


@cache
def grouped_zones() -> list[tuple[str, list[tuple[str, str]]]]:
    """For a select: regions, each with its zones' names and how to write them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(zone_names()):
        region, place = name.split("/", 1)
        groups.setdefault(region, []).append((name, place.replace("_", " ").replace("/", ", ")))
    return sorted(groups.items())
