"""What goes with a palace: what Redis still holds of the replies that were just written there."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.signals import pre_delete
from django.utils import timezone

from chat import live, reply_ending
from chat.models import Message
from palace.models import Palace


def forget_with_palaces() -> None:
    """From now on replies in Redis go when their palace does, by whatever way."""
    pre_delete.connect(_palace_goes, sender=Palace, dispatch_uid="replies")


def _palace_goes(instance: Palace, **_: Any) -> None:
    lately = Q(said_at__gte=timezone.now() - timedelta(seconds=live.KEPT_S))
    writing = Q(status=Message.Status.WRITING)
    replies = Message.objects.filter(lately | writing, palace=instance, role="assistant")
    transaction.on_commit(partial(_forget, list(replies.order_by())))


def _forget(replies: list[Message]) -> None:
    for reply in replies:
        reply_ending.forget(reply.uuid)
        if reply.is_writing:
            reply_ending.cancel(reply)  # Drops what its writer has published since.
