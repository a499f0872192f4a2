"""Tables of operations: receipts of messages, activities, imports, answers to writes, webhooks.

Receipts are of accepted messages, activities are shown to the user, imports tell their progress,
and answers to writes are repeated. A webhook has the deliveries of its events.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from palace.models.concurrency import sweep_task
from palace.models.hierarchy import Room
from palace.models.palace import InPalace, InPalaceQuerySet, Palace

WRITES_KEPT_FOR = timedelta(hours=24)


class ActivityQuerySet(InPalaceQuerySet["Activity"]):
    def note_degraded(self, room: Room, notes: Sequence[str]) -> None:
        """Add sentences to the latest activity about mining the room, each once.

        For work that follows mining. Call it outside of a transaction.

        Raises:
            Palace.DoesNotExist: the palace was deleted meanwhile.
        """
        if not notes:
            return
        with transaction.atomic():
            room.palace.lock()
            mined = self.within(room.palace).filter(kind=Activity.Kind.MEMORY_MINED)
            activity = mined.filter(detail__room=str(room.uuid)).order_by("-pk").first()
            activity = activity or Activity(
                palace=room.palace,
                kind=Activity.Kind.MEMORY_MINED,
                summary=f"Read “{room.title}” again."[:300],
                detail={"room": str(room.uuid)},
            )
            there = activity.detail.get("notes", [])
            activity.detail["notes"] = list(dict.fromkeys([*there, *notes]))
            activity.save()


class Activity(InPalace):
    """What was done for the user: one sentence, with its figures."""

    class Kind(models.TextChoices):
        MEMORY_MINED = "memory_mined", "Remembered"
        CHATS_IMPORTED = "chats_imported", "Imported"
        DRAWERS_TRASHED = "drawers_trashed", "Moved to the trash"
        DRAWERS_RESTORED = "drawers_restored", "Restored"
        DRAWERS_PURGED = "drawers_purged", "Deleted for good"
        DRAWERS_MOVED = "drawers_moved", "Moved"
        WING_CHANGED = "wing_changed", "Wings renamed"
        WINGS_MERGED = "wings_merged", "Wings merged"
        ENTITIES_MERGED = "entities_merged", "People and things merged"
        ENTITY_SPLIT = "entity_split", "People and things split"
        ENTITY_UNDONE = "entity_undone", "Merges and splits undone"
        DREAMT = "dreamt", "Dreamt"

    kind = models.CharField(max_length=30, choices=Kind.choices)
    summary = models.CharField(max_length=300, help_text="One sentence for a person.")
    detail = models.JSONField(default=dict, help_text="Its figures, and what it was about.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ActivityQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "activities"
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="activity_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="activity_uuid"),
        ]
        indexes = [models.Index(fields=["palace", "-created_at"], name="activity_by_time")]

    def __str__(self) -> str:
        return self.summary

    @staticmethod
    def summary_of_mining(count: int, room: Room) -> str:
        """The sentence on the messages mined in a room."""
        messages = "message" if count == 1 else "messages"
        return f"Remembered {count} {messages} of “{room.title}” in {room.wing.name}."[:300]


class AcceptedMessage(models.Model):
    """A message that was filed, apart from its drawer, for the audit to compare the two.

    The row stays when the drawer is purged, without the digest: from it the words could be guessed.
    """

    pk = models.CompositePrimaryKey("palace_id", "uuid")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    uuid = models.UUIDField(help_text="The drawer's.")
    digest = models.BinaryField(
        null=True, help_text="The first 16 bytes of the text's SHA-256; null once it is purged."
    )
    purged_at = models.DateTimeField(null=True)
    purged_key = models.BinaryField(
        null=True,
        help_text="Of a purged message: a digest of its ids, by which the chat and a repeated "
        "request know their own.",
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["palace", "purged_key"],
                condition=models.Q(purged_key__isnull=False),
                name="accepted_message_purged",
            )
        ]

    def __str__(self) -> str:
        return str(self.uuid)


class ImportJob(InPalace):
    """The progress of one imported file; read = stored + present + skipped, at every moment."""

    class Status(models.TextChoices):
        READY = "ready", "previewed, not started"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "stopped by an error"

    UNFINISHED = (Status.READY, Status.RUNNING)
    # The format of the sample palace, and the source of its drawers.
    SAMPLE = "sample"

    file_name = models.CharField(max_length=255)
    file_sha256 = models.CharField(max_length=64)
    format = models.CharField(max_length=30)
    spool = models.CharField(
        max_length=500, help_text="Its conversations, one a line, ready to file."
    )
    spool_offset = models.BigIntegerField(default=0, help_text="Bytes of the spool already filed.")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.READY)
    preview = models.JSONField(default=dict)
    conversations_total = models.PositiveIntegerField(default=0)
    conversations_done = models.PositiveIntegerField(default=0)
    messages_total = models.PositiveIntegerField(default=0)
    messages_stored = models.PositiveIntegerField(default=0)
    messages_present = models.PositiveIntegerField(default=0, help_text="Were already here.")
    messages_skipped = models.JSONField(default=dict, help_text="How many, by reason.")
    error = models.TextField(blank=True)
    progress_at = models.DateTimeField(null=True, help_text="When it was started or last went on.")
    measured_from = models.DateTimeField(
        null=True, help_text="Since when its speed is measured; restarted after a pause."
    )
    measured_done = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Messages that were done when the measuring began."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["palace", "uuid"], name="import_job_uuid")]

    def __str__(self) -> str:
        return self.file_name

    def get_absolute_url(self) -> str:
        return reverse("import_detail", args=[self.uuid])


class IdempotentWrite(models.Model):
    """One `Idempotency-Key` of an owner's programs; without `status` it is in progress.

    What was answered may hold words of memories, so `forget_answers` of the owner goes with every
    deletion for good.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, help_text="Of method, path and body.")
    claimed_at = models.DateTimeField(default=timezone.now)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="idempotent_write_once")
        ]
        indexes = [models.Index(fields=["claimed_at"], name="idempotent_write_age")]

    def __str__(self) -> str:
        return self.key


def forget_answers(owner: int) -> None:
    """Forget what an owner's programs sent and were answered, but not that they wrote.

    A repeated request is executed again under the ids of its claim, so it stores nothing twice; any
    request with the key counts as the same. A write that is under way stores no answer: its claim
    has another moment by then.
    """
    writes = IdempotentWrite.objects.filter(owner=owner)
    writes.filter(status=None).update(fingerprint="", claimed_at=timezone.now())
    writes.exclude(status=None).update(fingerprint="", status=None, body=None, headers={})


@sweep_task("palace.tasks.forget_answered_writes", "answers")
def forget_answered_writes() -> None:
    """Delete expired responses of idempotent writes."""
    IdempotentWrite.objects.filter(claimed_at__lt=timezone.now() - WRITES_KEPT_FOR).delete()


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
