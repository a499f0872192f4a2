"""Writes that a program may send again: what was answered the first time."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

KEPT_FOR = timedelta(hours=24)


class IdempotentWrite(models.Model):
    """One `Idempotency-Key` of an owner's programs; without `status` it is under way.

    What was answered may hold words of memories: it is deleted whenever any of the owner's are.
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


def forget_old_writes() -> int:
    """Returns how many answers were let go."""
    old = IdempotentWrite.objects.filter(claimed_at__lt=timezone.now() - KEPT_FOR)
    count, _ = old.delete()
    return count
