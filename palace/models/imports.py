"""A file of conversations on its way in."""

from __future__ import annotations

from django.db import models
from django.urls import reverse

from palace.models.palace import InPalace


class ImportJob(InPalace):
    """Progress and receipt of one file. in = stored + already there + skipped, at every moment."""

    class Status(models.TextChoices):
        READY = "ready", "previewed, not started"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "stopped by an error"

    UNFINISHED = (Status.READY, Status.RUNNING)

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
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["palace", "uuid"], name="import_job_uuid")]

    def __str__(self) -> str:
        return self.file_name

    def get_absolute_url(self) -> str:
        return reverse("import_detail", args=[self.uuid])
