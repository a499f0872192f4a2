"""The second step of signing in: a code of an authenticator app (TOTP), or a recovery code.

Each code works once. The app's secret is stored encrypted, recovery codes as digests: they are
random enough that a plain digest cannot be reversed.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from settings_app.secrets import Unreadable, seal, unseal

ISSUER = "Loci"
# Parameters that every authenticator app supports.
DIGITS, STEP_S = 6, 30
SECRET_BYTES = 20
# How many steps a phone's clock may be off.
DRIFT = 1
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
_NOT_OF_A_CODE = re.compile(r"[\s-]")


class SecondStep(models.Model):
    """A user's second step; without `confirmed_at` it is not active yet."""

    owner = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="second_step"
    )
    sealed_secret = models.TextField(help_text="Encrypted; see settings_app.secrets.")
    begun_at = models.DateTimeField(default=timezone.now)
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(
        default=0, help_text="Of the last code that was used; none up to it works again."
    )
    recovery_digests = ArrayField(models.CharField(max_length=64), default=list)

    def __str__(self) -> str:
        return f"second step of user {self.owner_id}"

    @property
    def secret(self) -> str:
        """The secret in base32, as apps read it.

        Raises:
            Unreadable: as `unseal`.
        """
        return unseal(self.sealed_secret)

    @property
    def address(self) -> str:
        """The address in the QR code."""
        name = self.owner.get_username()
        return _app(self.secret).get_provisioning_uri(name, ISSUER)


def of_user(user: User) -> SecondStep | None:
    """The user's second step, confirmed or not."""
    return SecondStep.objects.filter(owner=user).select_related("owner").first()


def is_on(user: User) -> bool:
    return SecondStep.objects.filter(owner=user).exclude(confirmed_at=None).exists()


def begin(user: User) -> None:
    """Make a secret for an app to read, unless there is one already."""
    secret = base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()
    SecondStep.objects.get_or_create(owner=user, defaults={"sealed_secret": seal(secret)})


@transaction.atomic
def confirm(user: User, code: str) -> list[str]:
    """Switch it on if the app's code is right. Returns the recovery codes, which are not stored;
    none if it was wrong, or is on already."""
    step = SecondStep.objects.select_for_update().filter(owner=user, confirmed_at=None).first()
    if step is None or not _take_app_code(step, _plain(code)):
        return []
    SecondStep.objects.filter(pk=step.pk).update(confirmed_at=timezone.now())
    return _new_recovery_codes(step)


@transaction.atomic
def new_recovery_codes(user: User) -> list[str]:
    """Make new recovery codes; earlier ones stop working."""
    return _new_recovery_codes(SecondStep.objects.select_for_update().get(owner=user))


def take(user: User, code: str) -> bool:
    """Use a code; returns whether it is right. Each works once, even if sent twice at once."""
    step = SecondStep.objects.filter(owner=user).exclude(confirmed_at=None).first()
    plain = _plain(code)
    if step is None or not plain:
        return False
    return _take_app_code(step, plain) or _take_recovery_code(step, plain)


def end(user: User) -> None:
    SecondStep.objects.filter(owner=user).delete()


def _plain(code: str) -> str:
    return _NOT_OF_A_CODE.sub("", code).upper()


def _app(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_S)  # noqa: S303 - apps know no other.


def _take_app_code(step: SecondStep, plain: str) -> bool:
    try:
        app = _app(step.secret)
    except Unreadable:
        return False  # A recovery code still works.
    now = int(time.time()) // STEP_S
    for number in range(now - DRIFT, now + DRIFT + 1):
        if constant_time_compare(app.generate(number * STEP_S), plain):
            # One that lies ahead is of a clock that was ahead, and would refuse every code.
            fresh = models.Q(last_step__lt=number) | models.Q(last_step__gt=now + DRIFT)
            unused = SecondStep.objects.filter(fresh, pk=step.pk)
            return bool(unused.update(last_step=number))
    return False


def _take_recovery_code(step: SecondStep, plain: str) -> bool:
    digest = _digest(plain)
    with transaction.atomic():
        known = SecondStep.objects.select_for_update().filter(pk=step.pk)
        found = known.filter(recovery_digests__contains=[digest]).first()
        if found is None:
            return False
        left = [each for each in found.recovery_digests if each != digest]
        known.update(recovery_digests=left)
    return True


def _new_recovery_codes(step: SecondStep) -> list[str]:
    plain = [
        base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode()
        for _ in range(RECOVERY_CODES)
    ]
    digests = [_digest(code) for code in plain]
    SecondStep.objects.filter(pk=step.pk).update(recovery_digests=digests)
    return ["-".join(re.findall("....", code)) for code in plain]


def _digest(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
