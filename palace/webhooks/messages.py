"""What is sent: ids, figures and times, and never a word of a memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from palace.models import Room, WebhookDelivery

# By what name a message calls what it is about.
_ABOUT = {"mined": "activity", "fact.changed": "change", "recalled": "recollection"}


def bodies(deliveries: Iterable[WebhookDelivery]) -> dict[int, bytes]:
    """By the deliveries' keys; JSON with `type`, `timestamp` and `data`, as Standard Webhooks has
    it.
    """
    held = list(deliveries)
    sessions = _sessions(held)
    return {delivery.pk: _body(delivery, sessions) for delivery in held}


def _body(delivery: WebhookDelivery, sessions: dict[str, str]) -> bytes:
    told = {
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat(),
        "data": _data(delivery, sessions),
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def _data(delivery: WebhookDelivery, sessions: dict[str, str]) -> dict[str, Any]:
    if delivery.palace is None:
        return dict(delivery.data)
    data = {
        "palace": str(delivery.palace.uuid),
        "user_id": delivery.palace.subject or None,
        _ABOUT[delivery.event]: str(delivery.about),
        **delivery.data,
    }
    if room := data.get("room"):
        data["session_id"] = sessions.get(room)
    return data


def _sessions(deliveries: Iterable[WebhookDelivery]) -> dict[str, str]:
    """Their owners' names for the conversations in these rooms; of a room that is gone, none."""
    asked = {(d.palace_id, d.data["room"]) for d in deliveries if d.palace_id and "room" in d.data}
    if not asked:
        return {}
    rooms = Room.objects.filter(
        palace__in={palace for palace, _ in asked}, uuid__in={room for _, room in asked}
    )
    return {str(uuid): name for uuid, name in rooms.values_list("uuid", "external_id")}
