"""Quota: how many messages, and how much text, a palace may hold; off by default.

A summary that a caller stored counts as a message, with its lists as text. What is in the trash
counts: it is still stored. What is derived of messages does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Func, IntegerField, Sum, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from palace.errors import QuotaExceeded
from palace.models import Episode, Palace, Room

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """The messages and stored summaries of a palace, and the bytes of their text in UTF-8."""

    messages: int
    text_bytes: int


@dataclass(frozen=True, slots=True)
class Quota:
    """The most a palace may hold; None for no limit."""

    messages: int | None
    text_bytes: int | None

    @property
    def is_set(self) -> bool:
        return self.messages is not None or self.text_bytes is not None


def palace_quota() -> Quota:
    """The configured quota, the same for every palace."""
    most_bytes = int(settings.QUOTA_MB * MB)
    return Quota(settings.QUOTA_MESSAGES or None, most_bytes or None)


def usage_of(palace: Palace) -> Usage:
    lists = (Cast(name, TextField()) for name in ("key_decisions", "entities", "tools"))
    summary = sum(map(_bytes, lists), _bytes("summary"))
    summaries = Episode.objects.within(palace).stored()
    stored = summaries.aggregate(rows=Count("pk"), text=Sum(summary))
    rooms = Room.objects.within(palace)
    said = rooms.aggregate(rows=Sum("stored_count", default=0), text=Sum("stored_bytes", default=0))
    return Usage(said["rows"] + stored["rows"], int(said["text"]) + (stored["text"] or 0))


def _bytes(text: str | Cast) -> Combinable:
    """The length as UTF-8, which is known without reading the text."""
    return Func(text, function="octet_length", output_field=IntegerField())


def check_quota(palace: Palace, texts: Sequence[str]) -> None:
    """Check that these messages, or this summary, fit in addition to the palace's content.

    Call it with the palace locked, or two writers can exceed the quota together.

    Raises:
        QuotaExceeded: they do not.
    """
    most = palace_quota()
    if not most.is_set:
        return
    used = usage_of(palace)
    more_bytes = sum(len(text.encode()) for text in texts)
    if most.messages is not None and used.messages + len(texts) > most.messages:
        raise QuotaExceeded("messages", most.messages, used.messages, len(texts))
    if most.text_bytes is not None and used.text_bytes + more_bytes > most.text_bytes:
        raise QuotaExceeded("bytes of text", most.text_bytes, used.text_bytes, more_bytes)
