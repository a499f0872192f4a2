"""The palace: the tenant, and the root of everything remembered about one person."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from django.contrib.auth.models import User


Row = TypeVar("Row", bound=models.Model)


class PalaceQuerySet(models.QuerySet["Palace"]):
    def own(self, owner: User) -> Palace:
        """The signed-in user's own palace, made on first use."""
        palace, _ = self.get_or_create(owner=owner, subject="")
        return palace


class Palace(models.Model):
    """All that is remembered about one person.

    `subject` is empty for the owner's own palace; an API key's owner names others by it.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="palaces")
    subject = models.CharField(max_length=200, blank=True, default="")
    # What was purged leaves its number behind: a pointer never comes to lead elsewhere.
    highest_wing = models.PositiveIntegerField(
        default=0, help_text="No wing is given a number up to here again."
    )
    highest_room = models.PositiveIntegerField(
        default=0, help_text="No room is given a number up to here again."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PalaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "subject"], name="palace_owner_subject")
        ]

    def __str__(self) -> str:
        return self.subject or f"palace of {self.owner}"

    def lock(self) -> None:
        """Make this transaction the only one that writes to this palace; readers are not held up.

        Whoever writes to drawers or passages does this first: the database does so itself after
        each such statement, to note the change, and waiting then could be for one another.
        """
        Palace.objects.select_for_update(no_key=True).only("pk").get(pk=self.pk)

    def lock_if_there(self) -> bool:
        """`lock`, and whether there still is such a palace."""
        held = Palace.objects.select_for_update(no_key=True).filter(pk=self.pk)
        return bool(held.values_list("pk"))


class InPalaceQuerySet(models.QuerySet[Row]):
    def within(self, palace: Palace) -> Self:
        return self.filter(palace=palace)


class InPalace(models.Model):
    """A row of one palace. Its key together with the palace's is what other rows refer to."""

    palace = models.ForeignKey(Palace, models.DO_NOTHING, related_name="+", db_constraint=False)
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)

    class Meta:
        abstract = True
