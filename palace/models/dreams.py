"""Dreams: their progress, and the changes of facts that they propose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q

from palace.models.facts import Fact
from palace.models.hierarchy import Drawer
from palace.models.operations import Activity
from palace.models.palace import ForeignKeyInPalace, InPalace, InPalaceQuerySet, OuterPalace, Palace


class DreamMark(models.Model):
    """The progress of a palace's dreams: one row per palace, created at its first dream."""

    palace = models.OneToOneField(
        Palace, models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    drawer = models.BigIntegerField(
        default=0, help_text="Messages with keys up to here were looked at for preferences."
    )
    dreamt_at = models.DateTimeField(null=True, help_text="When the last dream began.")

    def __str__(self) -> str:
        return f"dreams of palace {self.palace_id}"


# Key in a fact's metadata: it concerns security, credentials or money.
ASKS_FIRST = "requires_user_permission"


def requires_permission(metadata: Mapping[str, Any]) -> bool:
    """Whether an assistant must ask the user before it acts on this."""
    return str(metadata.get(ASKS_FIRST, "")).lower() == "true"


class ProposalQuerySet(InPalaceQuerySet["Proposal"]):
    def waiting(self) -> Self:
        """Open proposals whose facts and quotes have not changed."""
        gone = ProposalFact.objects.filter(
            palace=OuterPalace(), proposal=OuterRef("pk"), fact__retired_at__isnull=False
        )
        trashed = ProposalQuote.objects.filter(
            palace=OuterPalace(), proposal=OuterRef("pk"), drawer__trashed_at__isnull=False
        )
        proposed = self.filter(status=Proposal.Status.PROPOSED)
        return proposed.exclude(Exists(gone)).exclude(Exists(trashed))

    def decided(self) -> Self:
        """Proposals decided by a person or by a dream, latest decision first."""
        decided = (Proposal.Status.ACCEPTED, Proposal.Status.REJECTED, Proposal.Status.UNDONE)
        return self.filter(status__in=decided).order_by("-decided_at", "-pk")


class Proposal(InPalace):
    """A change of facts. It is applied when it is accepted.

    It was found in a dream; or it is an unsure fact, which enters recall when it is accepted.

    `payload` holds `before` (what each fact says, in the order of `about`), `after` (the new
    fact; null if there is none), `why`, and `made_by`: model or rules.
    """

    class Kind(models.TextChoices):
        MERGE = "merge", "Merge duplicates"
        REFINE = "refine", "File it better"
        DROP = "drop", "Remove noise"
        OUTDATED = "outdated", "Remove outdated"
        CONTRADICTION = "contradiction", "Resolve conflict"
        UNSURE = "unsure", "Unsure facts"
        ANTI_PATTERN = "anti_pattern", "What not to do"
        PREFERENCE = "preference", "What you seem to like"

    class Status(models.TextChoices):
        PROPOSED = "proposed"
        ACCEPTED = "accepted"
        REJECTED = "rejected"
        UNDONE = "undone"
        STALE = "stale"

    kind = models.CharField(max_length=14, choices=Kind)
    status = models.CharField(max_length=10, choices=Status, default=Status.PROPOSED)
    fingerprint = models.UUIDField(
        help_text="The same for the same change of the same statements, whoever finds it again."
    )
    payload = models.JSONField(help_text="What it changes, before and after.")
    applied = models.JSONField(null=True, help_text="What accepting it did, for undoing it.")
    dream = ForeignKeyInPalace(
        Activity,
        models.SET_NULL,
        null=True,
        related_name="proposals",
        db_constraint=False,
        db_index=False,
    )
    made_at = models.DateTimeField(help_text="When it was proposed, the last time.")
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=20, blank=True, help_text="person, or dream.")

    objects = ProposalQuerySet.as_manager()

    class Meta:
        ordering = ["-made_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="proposal_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="proposal_uuid"),
            models.UniqueConstraint(fields=["palace", "fingerprint"], name="proposal_once"),
            models.CheckConstraint(
                condition=Q(decided_at=None) | ~Q(status="proposed"),
                name="proposal_undecided",
            ),
        ]
        indexes = [
            models.Index(fields=["palace", "status", "-made_at"], name="proposal_by_status"),
            models.Index(fields=["palace", "dream"], name="proposal_by_dream"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}"

    @property
    def asks_first(self) -> bool:
        """Whether an assistant must ask the user before it acts on this."""
        after = self.payload["after"] or {}
        return requires_permission(after.get("metadata", {}))


# The kinds that dreams find, with their labels.
DREAMT_KINDS = [choice for choice in Proposal.Kind.choices if choice[0] != Proposal.Kind.UNSURE]


class ProposalFact(models.Model):
    """A fact of a proposal: the version that the dream read."""

    class Role(models.TextChoices):
        """Whether the fact is replaced, stays as the reason, or is the result."""

        SOURCE = "source"
        BESIDE = "beside"
        MADE = "made"

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    proposal = ForeignKeyInPalace(
        Proposal, models.CASCADE, related_name="about", db_constraint=False, db_index=False
    )
    fact = ForeignKeyInPalace(
        Fact, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "proposal", "fact"], name="proposal_fact")
        ]
        indexes = [models.Index(fields=["palace", "fact"], name="proposal_by_fact")]

    def __str__(self) -> str:
        return f"{self.role} {self.fact_id} of {self.proposal_id}"


class ProposalQuote(models.Model):
    """A quote of a proposal: characters `start` to `end` (exclusive) of a drawer."""

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    proposal = ForeignKeyInPalace(
        Proposal, models.CASCADE, related_name="words", db_constraint=False, db_index=False
    )
    drawer = ForeignKeyInPalace(
        Drawer, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["palace", "proposal", "drawer", "start"], name="proposal_quote"
            )
        ]
        indexes = [models.Index(fields=["palace", "drawer"], name="proposal_by_drawer")]

    def __str__(self) -> str:
        return f"{self.proposal_id} on {self.drawer_id}[{self.start}:{self.end}]"
