"""An inventory of working memory for a model: the entries, without their values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils import timezone

from palace.models import Palace
from palace.working.entries import Entry, entries_under
from palace.working.names import Namespace

OWN = (
    "Working memory (scratch space — use search_working_memory or get_from_working_memory to "
    "retrieve):"
)
PATROLS = (
    "Patrol findings in working memory (use get_from_working_memory with the full key to read):"
)
SUBAGENTS = (
    "Subagent research in working memory (use get_from_working_memory with the full key to read):"
)
# The suffix of outline keys, which lead a session to the other entries.
INDEX = "-index"


def inventory(palace: Palace, own: Namespace) -> str:
    """A line for each own entry; for a session also patrols' entries and subagents' outlines.

    Empty if there are none.

    Raises:
        WorkingMemoryAway: Redis does not respond.
    """
    parts = [(OWN, entries_under(palace, str(own)))]
    if own.kind == "session":
        outlines = [each for each in entries_under(palace, "subagent") if is_outline(each)]
        parts += [(PATROLS, entries_under(palace, "patrol")), (SUBAGENTS, outlines)]
    now = timezone.now()
    return "\n\n".join(_part(title, entries, now) for title, entries in parts if entries)


def is_outline(entry: Entry) -> bool:
    return entry.path.key.endswith(INDEX)


def _part(title: str, entries: Sequence[Entry], now: datetime) -> str:
    return "\n".join([title, *(_line(entry, now) for entry in entries)])


def _line(entry: Entry, now: datetime) -> str:
    parts = [f"expires in {time_left(entry.expires_at - now)}"]
    if entry.category:
        parts.append(f"category: {entry.category}")
    if entry.tags:
        parts.append(f"tags: {', '.join(entry.tags)}")
    return f"- {entry.path}: {', '.join(parts)}"


def time_left(left: timedelta) -> str:
    """The time in its two largest units: `4m32s`, `4h08m`, `3d04h`; below a minute `9s`."""
    seconds = max(0, int(left.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{seconds % 60:02}s" if minutes else f"{seconds}s"
