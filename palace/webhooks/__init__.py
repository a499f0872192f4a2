"""Webhooks notify the owner's programs of events in the palaces: add, change and test them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from language.errors import BadInput
from language.storable import storable_id
from palace.models import Webhook, WebhookDelivery
from palace.webhooks.http_sender import check_url, new_secret
from settings_app.secrets import seal

MOST = 20
# How long a receiver may still use the former secret.
FORMER_SIGNS_FOR = timedelta(days=1)


@transaction.atomic
def add(
    owner_id: int,
    url: str,
    events: Collection[str],
    subject: str | None = None,
    *,
    webhook_id: UUID | None = None,
) -> tuple[Webhook, str]:
    """Create a webhook; returns it with its signing secret, which is shown only once.

    Args:
        webhook_id: Its id, if the caller has made one; default: a new one.

    Raises:
        BadInput: the URL is invalid, no event is given, or there are too many webhooks.
    """
    check_url(url)
    # Lock, so that concurrent calls cannot exceed the limit.
    get_user_model().objects.select_for_update(no_key=True).get(pk=owner_id)
    if Webhook.objects.filter(owner=owner_id).count() >= MOST:
        raise BadInput(f"There are {MOST} webhooks already. Delete one that you need no more.")
    secret = new_secret()
    webhook = Webhook.objects.create(
        uuid=webhook_id or uuid4(),
        owner_id=owner_id,
        url=url,
        events=_in_order(events),
        subject=subject if subject is None else storable_id(subject),
        sealed_secret=seal(secret),
    )
    return webhook, secret


def change(webhook: Webhook, *, url: str | None = None, events: Collection[str] = ()) -> None:
    """
    Raises:
        BadInput: as `add`.
    """
    if url is not None:
        check_url(url)
        webhook.url = url
    if events:
        webhook.events = _in_order(events)
    webhook.save(update_fields=["url", "events"])


@transaction.atomic
def replace_secret(webhook: Webhook) -> str:
    """A new signing secret, which is returned only here; the one before signs for a day more."""
    stored = Webhook.objects.select_for_update().get(pk=webhook.pk)
    secret = new_secret()
    _update(
        webhook,
        sealed_secret=seal(secret),
        former_sealed_secret=stored.sealed_secret,
        former_until=timezone.now() + FORMER_SIGNS_FOR,
    )
    return secret


def enable(webhook: Webhook) -> None:
    """Enable it; pending deliveries go first."""
    _update(webhook, disabled_at=None, disabled_why="", failing_since=None)


def disable(webhook: Webhook) -> None:
    """Disable it; deliveries wait until it is enabled."""
    if webhook.disabled_at is None:
        _update(webhook, disabled_at=timezone.now(), disabled_why="You stopped it.")


def try_out(webhook: Webhook) -> WebhookDelivery:
    """Queue a test event, delivered like all others.

    Raises:
        BadInput: the webhook is disabled.
    """
    if webhook.disabled_at is not None:
        raise BadInput("This webhook is disabled. Enable it first.")
    said = "This is a test. Nothing happened in your palace."
    return WebhookDelivery.objects.create(
        webhook=webhook, event=WebhookDelivery.TEST, data={"message": said}
    )


def _in_order(events: Collection[str]) -> list[str]:
    chosen = [event for event in Webhook.Event.values if event in events]
    if not chosen:
        raise BadInput(f"events: name at least one of {', '.join(Webhook.Event.values)}.")
    return chosen


def _update(webhook: Webhook, **values: object) -> None:
    for name, value in values.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=list(values))
