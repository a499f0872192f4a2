"""Send due deliveries, with retries and bounded concurrency.

One process sends at a time, under a database lock that ends with it. So a process that begins takes
back what a dead one had claimed; otherwise claims end after `LEASE_S`. An event may arrive twice,
with the same id, and none is lost.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone
from prometheus_client import Counter

from palace.models import Room, Webhook, WebhookDelivery
from palace.models.concurrency import held_if_free, sweep_task
from palace.webhooks import Outcome, WebhookClient, signed_headers
from settings_app.secrets import Unreadable, unseal
from settings_app.task_queue import BULK

# The name of each event's subject in its payload.
_ABOUT = {"mined": "activity", "fact.changed": "change", "recalled": "recollection"}
# Seconds until each retry; after the last the delivery fails. About three days.
PAUSES_S = (5, 60, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 16 * 3600, 24 * 3600)
# After a connection failure, the webhook's other deliveries are postponed.
AWAY_S = 60
# The most deliveries, and seconds, of a webhook before it is the others' turn.
AT_ONCE, BATCH_S = 20, 20
# How often the clock queues a delivery, and after how long one makes way for other tasks.
INTERVAL_S, SLICE_S = 5, 10
# The number of concurrent senders.
SENDERS = 8
# Longer than a batch plus one response take.
LEASE_S = 120
DISABLED_AFTER = timedelta(days=3)
KEPT_FOR = timedelta(days=7)
UNREADABLE = (
    "Its secret can no longer be read, because this server's secret has changed. Delete this "
    "webhook and add it again."
)
_ATTEMPTS = Counter("loci_webhook_attempts", "Attempts to deliver to webhooks.", ["outcome"])
_CLAIM = """
    UPDATE palace_webhookdelivery SET due_at = statement_timestamp() + make_interval(secs => %s),
        taken_at = statement_timestamp() WHERE id IN (
        SELECT d.id FROM palace_webhook w CROSS JOIN LATERAL (
            SELECT id FROM palace_webhookdelivery
            WHERE webhook_id = w.id AND due_at <= clock_timestamp() ORDER BY due_at, id LIMIT %s
            FOR UPDATE SKIP LOCKED
        ) d WHERE w.disabled_at IS NULL
    ) RETURNING id
"""
# Settling one sets another time.
_RECLAIM = """
    UPDATE palace_webhookdelivery SET due_at = clock_timestamp()
    WHERE due_at > clock_timestamp() AND due_at = taken_at + make_interval(secs => %s)
"""


@dataclass(slots=True)
class DeliveryBatch:
    """A batch of one webhook's deliveries, and their outcomes.

    Attributes:
        outcomes: By the deliveries' keys; missing ones were not tried.
    """

    webhook: Webhook
    deliveries: list[WebhookDelivery]
    bodies: dict[int, bytes]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    away: bool = False


def deliver_due(*, seconds: float) -> bool:
    """Send due deliveries for some time; returns whether none is left.

    Call it under a lock that no two processes hold.
    """
    until = time.monotonic() + seconds
    _reclaim()
    with ThreadPoolExecutor(SENDERS, thread_name_prefix="webhook") as senders:
        while batches := _batches(_claim()):
            under_way: list[Future[DeliveryBatch]] = [
                senders.submit(_send_batch, batch) for batch in batches
            ]
            for done in as_completed(under_way):
                _settle(done.result())
            if time.monotonic() > until:
                return False
    return True


def forget_old() -> int:
    """Delete old deliveries, sent or not, and secrets that no longer sign; returns how many
    deliveries."""
    over = Webhook.objects.filter(former_until__lte=timezone.now())
    over.update(former_sealed_secret="", former_until=None)
    count, _ = WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
    return count


def _reclaim() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RECLAIM, [LEASE_S])


def _claim() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [LEASE_S, AT_ONCE])
        return [key for (key,) in cursor.fetchall()]


def _batches(keys: Sequence[int]) -> list[DeliveryBatch]:
    rows = WebhookDelivery.objects.filter(pk__in=keys).select_related("webhook", "palace")
    by_webhook: defaultdict[Webhook, list[WebhookDelivery]] = defaultdict(list)
    for delivery in rows.order_by("pk"):
        by_webhook[delivery.webhook].append(delivery)
    return [
        DeliveryBatch(webhook, deliveries, bodies(deliveries))
        for webhook, deliveries in by_webhook.items()
    ]


def _send_batch(batch: DeliveryBatch) -> DeliveryBatch:
    """Send a batch, in a thread that does not use the database."""
    try:
        keys = _signing_keys(batch.webhook)
    except Unreadable:
        batch.outcomes[batch.deliveries[0].pk] = Outcome(None, UNREADABLE)
        batch.away = True
        return batch
    until = time.monotonic() + BATCH_S
    with WebhookClient(batch.webhook.url) as client:
        for delivery in batch.deliveries:
            body = batch.bodies[delivery.pk]
            headers = signed_headers(keys, delivery.message_id, int(time.time()), body)
            outcome = batch.outcomes[delivery.pk] = client.send(body, headers)
            batch.away = outcome.status is None
            if batch.away or outcome.gone or time.monotonic() > until:
                break
    return batch


def _signing_keys(webhook: Webhook) -> list[str]:
    """The secret; for a day after it was replaced, also the one before.

    Raises:
        Unreadable: as `unseal`.
    """
    keys = [unseal(webhook.sealed_secret)]
    if webhook.former_signs_until is not None:
        with suppress(Unreadable):
            keys.append(unseal(webhook.former_sealed_secret))
    return keys


def _settle(batch: DeliveryBatch) -> None:
    """Store the outcomes, in the thread that has the database connection."""
    now = timezone.now()
    with transaction.atomic():
        for delivery in batch.deliveries:
            outcome = batch.outcomes.get(delivery.pk)
            row = WebhookDelivery.objects.filter(pk=delivery.pk)
            if outcome is None:
                row.update(due_at=now + timedelta(seconds=AWAY_S if batch.away else 0))
                continue
            _ATTEMPTS.labels("arrived" if outcome.arrived else "failed").inc()
            attempts = delivery.attempts + 1
            row.update(
                attempts=attempts,
                status=outcome.status,
                said=outcome.said[:300],
                delivered_at=now if outcome.arrived else None,
                due_at=None if outcome.arrived or outcome.gone else _next(attempts, now),
            )
        _update_status(batch.webhook, list(batch.outcomes.values()), now)


def _next(attempts: int, now: datetime) -> datetime | None:
    """The time of the next attempt; None after the last."""
    if attempts > len(PAUSES_S):
        return None
    # Jitter, so that deliveries that failed together are not retried together.
    return now + timedelta(seconds=PAUSES_S[attempts - 1] * random.uniform(1, 1.1))  # noqa: S311


def _update_status(webhook: Webhook, outcomes: Sequence[Outcome], now: datetime) -> None:
    """Update the webhook's status; disable it if the endpoint is gone or fails for long."""
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
    """The payloads by delivery key: JSON in the form of Standard Webhooks."""
    deliveries = list(deliveries)
    sessions = _sessions(deliveries)
    return {delivery.pk: _body(delivery, sessions) for delivery in deliveries}


def _body(delivery: WebhookDelivery, sessions: dict[str, str]) -> bytes:
    payload = {
        "type": delivery.event,
        "timestamp": delivery.created_at.isoformat(),
        "data": _data(delivery, sessions),
    }
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


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
    """The external conversation ids of the deliveries' rooms; deleted rooms are missing."""
    wanted = {(d.palace_id, d.data["room"]) for d in deliveries if d.palace_id and "room" in d.data}
    if not wanted:
        return {}
    rooms = Room.objects.filter(
        palace__in={palace for palace, _ in wanted}, uuid__in={room for _, room in wanted}
    )
    return {str(uuid): name for uuid, name in rooms.values_list("uuid", "external_id")}


@sweep_task(
    "palace.tasks.deliver_webhooks", "webhooks", expires=INTERVAL_S, reject_on_worker_lost=False
)
def deliver_webhooks() -> None:
    """Send due webhook deliveries; slow endpoints occupy at most one worker."""
    with held_if_free("deliver webhooks") as ours:
        done = not ours or deliver_due(seconds=SLICE_S)
    if not done:
        deliver_webhooks.apply_async(queue=BULK)


@sweep_task("palace.tasks.forget_old_deliveries", "deliveries")
def forget_old_deliveries() -> None:
    forget_old()
