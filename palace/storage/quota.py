"""Quota: how many messages, and how much text, a palace may hold; off by default.

Messages in the trash count: they are still stored. What is derived of messages does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, F, Func, IntegerField, Sum

from palace.errors import QuotaExceeded
from palace.models import Drawer, Palace

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one palace: its messages, and the bytes of their text as UTF-8."""

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
    """What the settings say, the same for every palace."""
    most_bytes = int(settings.QUOTA_MB * MB)
    return Quota(settings.QUOTA_MESSAGES or None, most_bytes or None)


def usage_of(palace: Palace) -> Usage:
    # Lengths are known without reading the texts.
    length = Func(F("text"), function="octet_length", output_field=IntegerField())
    used = Drawer.objects.within(palace).aggregate(messages=Count("pk"), text=Sum(length))
    return Usage(used["messages"], used["text"] or 0)


def check_quota(palace: Palace, texts: Sequence[str]) -> None:
    """Check that these messages fit beside what the palace holds.

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
