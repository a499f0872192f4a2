"""API keys of programs, shown once and then stored as a digest only; and the audit log, a line for
each write by a key.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import IntegrityError, OperationalError, models, transaction
from django.utils import timezone

from isolation import row_access
from isolation.raw_sql import columns, fetch_rows, read_instance
from isolation.row_access import Access

logger = logging.getLogger(__name__)

STARTS_WITH = "loci_"
# The first characters of a key, stored so that people can distinguish their keys.
SHOWN_CHARS = len(STARTS_WITH) + 6
# The precision of the time of last use; otherwise each use would be a write.
USE_NOTED_EVERY = timedelta(minutes=1)


class ApiKey(models.Model):
    """An API key: what a program may do for its owner.

    `subject` is the name of the only palace that it opens; empty: the owner's own palace. None: all
    palaces of the owner.
    """

    class Scope(models.TextChoices):
        READ = "read", "Read: recall, search, list"
        WRITE = "write", "Write: add, change, delete memories"
        ADMIN = "admin", "Administer: settings, webhooks, deleting a whole person"

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    start = models.CharField(max_length=SHOWN_CHARS)
    # A key has 256 random bits and cannot be guessed, so it needs no slow hash.
    digest = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=5, choices=Scope))
    subject = models.CharField(max_length=200, blank=True, null=True, default=None)  # noqa: DJ001
    created_at = models.DateTimeField(default=timezone.now)
    trusts_open_webui = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its headers X-OpenWebUI-… name the palace and the conversation.",
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.start}…)"

    @property
    def state(self) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "active"

    @property
    def is_usable(self) -> bool:
        return self.state == "active" and self.owner.is_active

    def row_access(self) -> Access:
        """The rows that the database shows to a bearer of the key."""
        return Access(owner=self.owner_id, subject=self.subject)

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def opens(self, subject: str) -> bool:
        """Whether the key may access the owner's palace of this subject."""
        return self.subject is None or self.subject == subject

    def revoke(self) -> None:
        """Revoke the key; it stays in the list."""
        ApiKey.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now())


def issue(
    owner: User,
    name: str,
    *,
    scopes: Collection[str] = ("read", "write"),
    subject: str | None = None,
    trusts_open_webui: bool = False,
    expires_at: datetime | None = None,
    key_id: uuid.UUID | None = None,
) -> tuple[ApiKey, str]:
    """Make a key; its text is returned here and never again.

    Args:
        key_id: Its public id, for callers that must make the key only once.

    Raises:
        IntegrityError: there is a key of that id.
    """
    text = STARTS_WITH + secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        uuid=key_id or uuid.uuid4(),
        owner=owner,
        name=name,
        start=text[:SHOWN_CHARS],
        digest=digest_of(text),
        scopes=[scope for scope in ApiKey.Scope.values if scope in scopes],
        subject=subject,
        trusts_open_webui=trusts_open_webui,
        expires_at=expires_at,
    )
    return key, text


def key_of(text: str) -> ApiKey | None:
    """Find the usable key of this text, with its owner, and note its use."""
    digest = digest_of(text)
    with row_access.with_secret(digest):
        found = _key_with(digest)
        if found is None or not found.is_usable:
            return None
        note_use(found)
    return found


def _key_with(digest: str) -> ApiKey | None:
    """The key of this digest, usable or not, with its owner."""
    for row in fetch_rows(_of_digest(), [digest], prepared=True):
        values = iter(row)
        key, owner = read_instance(ApiKey, values), read_instance(User, values)
        if key is not None and owner is not None:
            key.owner = owner
        return key
    return None


@cache
def _of_digest() -> str:
    read = f"{columns(ApiKey, 'k')}, {columns(User, 'o')}"
    return (
        f"SELECT {read} FROM settings_app_apikey k"  # noqa: S608 - put together from the models.
        " JOIN auth_user o ON o.id = k.owner_id WHERE k.digest = %s"
    )


def note_use(key: ApiKey) -> None:
    """Call it with the key's row open."""
    now = timezone.now()
    if key.last_used_at is not None and now - key.last_used_at < USE_NOTED_EVERY:
        return
    try:
        with transaction.atomic():
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
    except OperationalError as error:
        # A full disk must not stop reads.
        logger.warning("The use of a key is not noted: %s", error)


def digest_of(text: str) -> str:
    """The stored digest of a secret of 256 random bits."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


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


def add_audit_line(key: ApiKey, *, door: str, action: str, path: str, status: int) -> None:
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


def delete_old_audit_lines() -> int:
    """Delete old lines; returns their number."""
    count, _ = AuditLine.objects.filter(at__lt=timezone.now() - KEPT_FOR).delete()
    return count
