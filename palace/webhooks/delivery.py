"""Delivering what is due: again and again until it arrives, and never all at once.

What is taken up is due again after `LEASE_S`, should its process die; so a message may arrive
twice, always under the same id, and none is lost.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from palace.models import Room, Webhook, WebhookDelivery
from palace.webhooks.http_sender import Line, Outcome
from palace.webhooks.signatures import signed_headers
from settings_app.secrets import Unreadable, unseal

# By what name a message calls what it is about.
_ABOUT = {"mined": "activity", "fact.changed": "change", "recalled": "recollection"}
# The pause after each attempt that failed, in seconds; after the last it is given up. Three days.
PAUSES_S = (5, 60, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 16 * 3600, 24 * 3600)
# Where a receiver cannot be reached at all, the others that wait for it are not tried just now.
AWAY_S = 60
# Of one webhook, so many messages and seconds before others get their turn.
AT_ONCE, TURN_S = 20, 20
# Receivers that are told at the same time.
SENDERS = 8
# Longer than a turn and one more answer take.
LEASE_S = 120
DISABLED_AFTER = timedelta(days=3)
KEPT_FOR = timedelta(days=7)
UNREADABLE = (
    "Its secret can no longer be read, because this server's secret has changed. Delete this "
    "webhook and add it anew."
)
_TAKE = """
    UPDATE palace_webhookdelivery SET due_at = clock_timestamp() + make_interval(secs => %s),
        taken_at = clock_timestamp() WHERE id IN (
        SELECT d.id FROM palace_webhook w CROSS JOIN LATERAL (
            SELECT id FROM palace_webhookdelivery
            WHERE webhook_id = w.id AND due_at <= clock_timestamp() ORDER BY due_at, id LIMIT %s
            FOR UPDATE SKIP LOCKED
        ) d WHERE w.disabled_at IS NULL
    ) RETURNING id
"""


@dataclass(slots=True)
class Turn:
    """What one webhook is told in one go, and what came of it.

    Attributes:
        outcomes: By the deliveries' keys; what is not there was not tried.
    """

    webhook: Webhook
    deliveries: list[WebhookDelivery]
    bodies: dict[int, bytes]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    away: bool = False


def deliver_due(*, seconds: float) -> bool:
    """Send what is due, for a while; returns whether all of it has had its turn."""
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(SENDERS, thread_name_prefix="webhook") as senders:
        while turns := _turns(_take()):
            under_way: list[Future[Turn]] = [senders.submit(_tell, turn) for turn in turns]
            for done in as_completed(under_way):
                _settle(done.result())
            if time.monotonic() > until:
                return False
    return True


def forget_old() -> int:
    """Returns how many deliveries were let go; also those that waited in vain."""
    count, _ = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
    return count


def _take() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [LEASE_S, AT_ONCE])
        return [key for (key,) in cursor.fetchall()]


def _turns(keys: Sequence[int]) -> list[Turn]:
    rows = WebhookDelivery.objects.filter(pk__in=keys).select_related("webhook", "palace")
    by_webhook: defaultdict[Webhook, list[WebhookDelivery]] = defaultdict(list)
    for delivery in rows.order_by("pk"):
        by_webhook[delivery.webhook].append(delivery)
    return [Turn(webhook, held, bodies(held)) for webhook, held in by_webhook.items()]


def _tell(turn: Turn) -> Turn:
    """In a thread of its own, which asks the database nothing."""
    try:
        secret = unseal(turn.webhook.sealed_secret)
    except Unreadable:
        turn.outcomes[turn.deliveries[0].pk] = Outcome(None, UNREADABLE)
        turn.away = True
        return turn
    until = time.monotonic() + TURN_S
    with Line(turn.webhook.url) as line:
        for delivery in turn.deliveries:
            body = turn.bodies[delivery.pk]
            headers = signed_headers(secret, delivery.message_id, int(time.time()), body)
            outcome = turn.outcomes[delivery.pk] = line.send(body, headers)
            turn.away = outcome.status is None
            if turn.away or outcome.gone or time.monotonic() > until:
                break
    return turn


def _settle(turn: Turn) -> None:
    """Write down what came of it; in the thread that holds the connection."""
    now = timezone.now()
    with transaction.atomic():
        for delivery in turn.deliveries:
            outcome = turn.outcomes.get(delivery.pk)
            row = WebhookDelivery.objects.filter(pk=delivery.pk)
            if outcome is None:
                row.update(due_at=now + timedelta(seconds=AWAY_S if turn.away else 0))
                continue
            attempts = delivery.attempts + 1
            row.update(
                attempts=attempts,
                status=outcome.status,
                said=outcome.said[:300],
                delivered_at=now if outcome.arrived else None,
                due_at=None if outcome.arrived or outcome.gone else _next(attempts, now),
            )
        _judge(turn.webhook, list(turn.outcomes.values()), now)


def _next(attempts: int, now: datetime) -> datetime | None:
    """None: it has been tried often enough."""
    if attempts > len(PAUSES_S):
        return None
    # Not all at the same moment, where many have failed at once.
    return now + timedelta(seconds=PAUSES_S[attempts - 1] * random.uniform(1, 1.1))  # noqa: S311


def _judge(webhook: Webhook, outcomes: Sequence[Outcome], now: datetime) -> None:
    """Whether it works, and whether to go on with it."""
    row = Webhook.objects.filter(pk=webhook.pk)
    if any(outcome.gone for outcome in outcomes):
        row.update(disabled_at=now, disabled_why="Disabled: the endpoint answered 410 Gone.")
    elif any(outcome.arrived for outcome in outcomes):
        row.exclude(failing_since=None).update(failing_since=None)
    elif outcomes:
        row.update(failing_since=Coalesce(F("failing_since"), now))
        why = f"Nothing has arrived for {DISABLED_AFTER.days} days. The last time: "
        row.filter(failing_since__lt=now - DISABLED_AFTER).update(
            disabled_at=now, disabled_why=(why + outcomes[-1].said)[:200]
        )


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
