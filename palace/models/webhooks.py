"""Webhooks, and the deliveries of events to them."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from palace.models.palace import Palace


class Webhook(models.Model):
    """A URL that receives events.

    `subject` names the one palace whose events it receives; empty: the owner's own. None: all of
    the owner's palaces.
    """

    class Event(models.TextChoices):
        MINED = "mined", "Mined: messages were filed, and can be found"
        FACT_CHANGED = "fact.changed", "A fact was added, changed or dropped"
        RECALLED = "recalled", "Recalled: somebody was given memories"

    uuid = models.UUIDField(default=uuid4, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=1000)
    events = ArrayField(models.CharField(max_length=20, choices=Event))
    subject = models.CharField(max_length=200, blank=True, null=True, default=None)  # noqa: DJ001
    sealed_secret = models.TextField(help_text="Encrypted; see settings_app.secrets.")
    former_sealed_secret = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The one before; also signs until `former_until`.",
    )
    former_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    failing_since = models.DateTimeField(null=True, help_text="Nothing has arrived since.")
    disabled_at = models.DateTimeField(null=True, help_text="Nothing is sent, or kept to be sent.")
    disabled_why = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.url

    @property
    def former_signs_until(self) -> datetime | None:
        """None once the secret before the present one signs no more."""
        until = self.former_until
        return until if until is not None and until > timezone.now() else None


class WebhookDelivery(models.Model):
    """One event for one webhook, written by a trigger in the transaction of the event.

    It holds ids and counts, and no word of a memory: a purge has nothing to take out of it.
    """

    # Not one of `Webhook.Event`: a test delivery that a user requested.
    TEST = "test"

    uuid = models.UUIDField(default=uuid4, unique=True, editable=False)
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, null=True, related_name="+", db_constraint=False
    )
    event = models.CharField(max_length=20)
    about = models.UUIDField(default=uuid4, help_text="Of the activity, event or trace.")
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(
        null=True, default=timezone.now, help_text="Null: it arrived, or was given up."
    )
    taken_at = models.DateTimeField(null=True, help_text="When it was last taken up to be sent.")
    attempts = models.PositiveSmallIntegerField(default=0)
    delivered_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="As HTTP has it; the last.")
    said = models.CharField(
        max_length=300, blank=True, help_text="What came of the last attempt, for a person."
    )

    class Meta:
        verbose_name_plural = "webhook deliveries"
        ordering = ["-pk"]
        constraints = [
            # Events that grow while they wait, such as mining, are delivered once.
            models.UniqueConstraint(
                fields=["webhook", "about"],
                condition=Q(taken_at=None),
                name="webhook_delivery_waits_once",
            )
        ]
        indexes = [
            models.Index(fields=["webhook", "-id"], name="webhook_delivery_newest"),
            models.Index(
                fields=["webhook", "due_at", "id"],
                name="webhook_delivery_due",
                condition=Q(due_at__isnull=False),
            ),
            models.Index(fields=["created_at"], name="webhook_delivery_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.uuid}"

    @property
    def message_id(self) -> str:
        """The id of the delivery, the same in all attempts."""
        return f"msg_{self.uuid.hex}"

    @property
    def state(self) -> str:
        """`delivered`, `waiting` or `failed`."""
        if self.delivered_at:
            return "delivered"
        return "waiting" if self.due_at else "failed"
