"""The audit log: a line for each write by an API key."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, OperationalError, models, transaction
from django.utils import timezone

from settings_app.api_keys import ApiKey

logger = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=90)
_PATH_CHARS = 300


class AuditLine(models.Model):
    """A write, also a refused one: its address, without any text of a memory."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="writes")
    at = models.DateTimeField(default=timezone.now)
    door = models.CharField(max_length=10, help_text="rest, mcp or proxy")
    action = models.CharField(max_length=10, help_text="The method; for a tool, `call`.")
    path = models.CharField(max_length=_PATH_CHARS, help_text="Without what follows a `?`.")
    status = models.PositiveSmallIntegerField(help_text="As HTTP has it.")

    class Meta:
        indexes = [models.Index(fields=["owner", "-at"], name="audit_line_owner_at")]

    def __str__(self) -> str:
        return f"{self.action} {self.path}: {self.status}"


def note(key: ApiKey, *, door: str, action: str, path: str, status: int) -> None:
    """Add a line; call it outside of the write's transaction, because refused writes are noted too.

    Does nothing if the account was deleted meanwhile.

    Args:
        path: Of characters that the database can store.
    """
    line = AuditLine(owner_id=key.owner_id, key=key, door=door, action=action, status=status)
    line.path = path[:_PATH_CHARS]
    try:
        with transaction.atomic():
            line.save()
    except OperationalError as error:
        # The write is answered already, or was refused for the same reason.
        logger.warning("A write leaves no line in the audit log: %s", error)
    except IntegrityError:
        if ApiKey.objects.filter(pk=key.pk).exists():
            raise


def forget_old() -> int:
    """Delete old lines; returns their number."""
    count, _ = AuditLine.objects.filter(at__lt=timezone.now() - KEPT_FOR).delete()
    return count
