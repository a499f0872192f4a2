"""Facts: statements with their time of validity, evidence, vectors and history."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, Exists, F, Func, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce
from pgvector.django import HalfVectorField

from language.facts import SURE
from language.storable import ID_LENGTH, LABEL_LENGTH
from palace.models.derived import Entity, SaidOrder, Statement, at_moment
from palace.models.hierarchy import Drawer, DrawerQuerySet
from palace.models.palace import ForeignKeyInPalace, InPalace, InPalaceQuerySet, OuterPalace, Palace
from palace.models.recall import EmbeddingSpace
from settings_app.fast_reverse import address_of

PREDICATE_LENGTH = 64


class _IsAmong(Func):
    """Whether a column is among many keys. However many, they are one parameter: as one each they
    take Django and the driver longer to write than the database to look up.
    """

    template = "%(expressions)s::bigint[])"
    arg_joiner = " = ANY("
    output_field = models.BooleanField()


def about_any(entities: Collection[int]) -> Q:
    """Condition: subject or object is one of these entities, given by key."""
    keys = Value(list(entities))
    return Q(_IsAmong(F("subject_id"), keys)) | Q(_IsAmong(F("object_entity_id"), keys))


class FactQuerySet(InPalaceQuerySet["Fact"]):
    def active(self) -> Self:
        """Active facts, including those whose validity is over."""
        return self.filter(retired_at=None)

    def unsure(self) -> Self:
        """Active facts that are not sure enough to be recalled, read from messages.

        They wait for the owner's decision; see `palace.knowledge.facts.unsure_facts`.
        """
        return self.active().filter(confidence__lt=SURE, opened_by__isnull=False)

    def latest_versions(self, memories: Collection[str | uuid.UUID]) -> Self:
        """The version of each of these memories that was recorded last."""
        versions = self.filter(memory__in=list(memories))
        return versions.order_by("memory", "-recorded_at", "-pk").distinct("memory")

    def remembered(self) -> Self:
        """All versions of memories, except memories that were deleted or lost their evidence.

        Nor is a version among them that rests on words in the trash alone.
        """
        versions = Fact.objects.filter(palace=OuterPalace(), memory=OuterRef("memory"))
        latest = versions.order_by(F("retired_at").desc(nulls_first=True), "-pk")
        forgotten = (Fact.Fate.DELETED, Fact.Fate.UNFOUNDED)
        words = Evidence.objects.filter(palace=OuterPalace(), fact=OuterRef("pk"))
        trashed_only = Exists(words) & ~Exists(words.filter(drawer__trashed_at=None))
        return self.alias(last_fate=Subquery(latest.values("fate")[:1])).exclude(
            Q(last_fate__in=forgotten) | trashed_only
        )

    def supported_only_by(self, palace: Palace, drawers: DrawerQuerySet) -> Self:
        """Active facts with evidence in these drawers, and in no other drawer outside the trash."""
        evidence = Evidence.objects.filter(palace=palace, fact=OuterRef("pk"))
        quotes = evidence.filter(drawer__in=drawers.within(palace).values("pk"))
        others = Drawer.objects.within(palace).kept().exclude(pk__in=drawers.values("pk"))
        elsewhere = evidence.filter(drawer__in=others.values("pk"))
        found = self.within(palace).filter(Exists(quotes)).active()
        return found.exclude(Exists(elsewhere))

    def true_at(self, moment: datetime) -> Self:
        """Facts that were true then, as known today."""
        active = Q(retired_at=None) | Q(fate__in=Fact.WAS_TRUE)
        begun = Q(valid_from=None) | Q(valid_from__lte=moment)
        return self.filter(active, begun, Q(valid_to=None) | Q(valid_to__gt=moment))

    def known_and_true_at(self, known: datetime, moment: datetime) -> Self:
        """Facts that were true at `moment`, as known at `known`.

        Ends that were recorded later are ignored.
        """
        begun = Q(valid_from=None) | Q(valid_from__lte=moment)
        active = Q(retired_at=None) | Q(retired_at__gt=known)
        was_true = Q(fate__in=Fact.WAS_TRUE) | Q(withdrawn_at__gt=known)
        ended_since = Q(was_true, retired_at__gt=known)
        lasting = Q(valid_to=None) | Q(valid_to__gt=moment) | ended_since
        was_so = Q(was_true, retired_at__lte=known, valid_to__gt=moment)
        return self.filter(Q(active, lasting) | was_so, begun, recorded_at__lte=known)

    def said_by(self, moment: datetime) -> Self:
        """Facts that were so then by the words said until then, whatever was said later.

        What has no words counts from when it was recorded. Versions corrected by hand are left out.
        Each has `end_by_then`: its `valid_to`, null where its end was said later.
        """
        words = Evidence.objects.filter(palace=OuterPalace(), fact=OuterRef("pk"))
        first_words = words.order_by("drawer__said_at").values("drawer__said_at")[:1]
        said = Coalesce("opened_by__drawer__said_at", first_words, "settled_at", "recorded_at")
        closed = Coalesce("closed_by__drawer__said_at", "retired_at")
        by_words = Q(fate__in=Fact.WAS_TRUE) | ~Q(fate="") & Q(closed_by__isnull=False)
        so_then = Q(retired_at=None) | Q(by_words, closed__gt=moment)
        begun = Q(valid_from=None) | Q(valid_from__lte=moment)
        # An end that was said later does not count.
        lasting = Q(valid_to=None) | Q(valid_to__gt=moment) | Q(closed__gt=moment)
        facts = self.alias(said=said, closed=closed).filter(said__lte=moment)
        end = Case(When(closed__gt=moment, then=None), default=F("valid_to"))
        return facts.filter(so_then, begun, lasting).annotate(end_by_then=end)

    def known_at(self, moment: datetime) -> Self:
        """Facts that were active then, whatever was recorded since."""
        return self.filter(Q(retired_at=None) | Q(retired_at__gt=moment), recorded_at__lte=moment)

    def as_of(self, *, true_at: datetime | None = None, known_at: datetime | None = None) -> Self:
        """Facts as of a moment of either clock, or of both; active facts by default.

        Args:
            true_at: What was true then.
            known_at: What was recorded by then, whatever was recorded since.
        """
        if known_at is not None and true_at is not None:
            return self.known_and_true_at(known_at, true_at)
        if known_at is not None:
            return self.known_at(known_at)
        return self.active() if true_at is None else self.true_at(true_at)

    def within_scope(self, *, agent: str = "", run: str = "") -> Self:
        """Facts of this agent and this run; empty: of all."""
        named = {"agent": agent, "run": run}
        return self.filter(**{name: value for name, value in named.items() if value})

    def for_agent(self, agent: str) -> Self:
        """Facts that this agent may use: its own and those without one; empty: all."""
        return self.filter(agent__in={"", agent}) if agent else self

    def in_order(self) -> Self:
        """Sort by when they became true; unknown first."""
        return self.order_by(F("valid_from").asc(nulls_first=True), "pk")


class Fact(InPalace):
    """One statement about a subject. Rows are never overwritten; a change is another row.

    Two clocks: `valid_from` and `valid_to` say when it was so in the world, `recorded_at` and
    `retired_at` when we learnt it and when we dropped it.
    """

    class Type(models.TextChoices):
        FACT = "fact"
        PREFERENCE = "preference"
        OPINION = "opinion"
        EVENT = "event"

    class Fate(models.TextChoices):
        """Why a fact is inactive."""

        NONE = "", "Active"
        SUPERSEDED = "superseded", "Replaced by a newer fact"
        ENDED = "ended", "Ended"
        REFINED = "refined", "Replaced by a more exact one"
        CORRECTED = "corrected", "Replaced by a correction"
        DELETED = "deleted", "Deleted"
        UNFOUNDED = "unfounded", "Its sources were deleted"

    # With these fates it was true until `valid_to`.
    WAS_TRUE = (Fate.SUPERSEDED, Fate.ENDED)

    memory = models.UUIDField(
        default=uuid.uuid4, editable=False, help_text="Shared by all versions of one memory."
    )
    type = models.CharField(max_length=12, choices=Type)
    subject = ForeignKeyInPalace(
        Entity, models.CASCADE, related_name="facts", db_constraint=False, db_index=False
    )
    predicate = models.CharField(max_length=PREDICATE_LENGTH)
    object = models.TextField(blank=True)
    object_entity = ForeignKeyInPalace(
        Entity,
        models.SET_NULL,
        null=True,
        related_name="facts_about",
        db_constraint=False,
        db_index=False,
        help_text="Where the object is an entity: the fact is an edge of the graph.",
    )
    aspect = models.CharField(max_length=LABEL_LENGTH, blank=True)
    stance = models.CharField(max_length=20, blank=True)
    text = models.TextField(help_text="The whole statement, in the third person.")
    confidence = models.FloatField()
    category = models.CharField(max_length=LABEL_LENGTH, blank=True, help_text="home/pets")
    tags = ArrayField(models.CharField(max_length=LABEL_LENGTH), default=list)
    metadata = models.JSONField(default=dict, help_text="The caller's own.")
    agent = models.CharField(max_length=ID_LENGTH, blank=True)
    run = models.CharField(max_length=ID_LENGTH, blank=True)
    single = models.BooleanField(
        help_text="Of its subject, predicate and aspect there is one at a time."
    )
    valid_from = models.DateTimeField(null=True, help_text="Null: since when is not known.")
    valid_to = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    fate = models.CharField(max_length=12, choices=Fate, blank=True, default=Fate.NONE)
    supersedes = ForeignKeyInPalace(
        "self",
        models.SET_NULL,
        null=True,
        related_name="superseded_by",
        db_constraint=False,
        db_index=False,
    )

    opened_by = ForeignKeyInPalace(
        Statement,
        models.SET_NULL,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        help_text="What was said that it comes from; null where it was written otherwise.",
    )
    closed_by = ForeignKeyInPalace(
        Statement,
        models.SET_NULL,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
        help_text="What was said that ended it; null where it was ended otherwise.",
    )
    settled_at = models.DateTimeField(
        null=True, help_text="When it was written by hand or by a program, not learnt."
    )

    withdrawn_at = models.DateTimeField(
        null=True, help_text="When we dropped that it had been so until `valid_to`."
    )

    objects = FactQuerySet.as_manager()

    class Meta:
        ordering = ["-recorded_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="fact_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="fact_uuid"),
            models.UniqueConstraint(
                fields=["palace", "memory"],
                condition=Q(retired_at=None),
                name="fact_one_active_version",
            ),
            models.UniqueConstraint(
                fields=["palace", "subject", "predicate", "aspect", "agent", "run"],
                condition=Q(retired_at=None, single=True),
                name="fact_one_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(retired_at=None, fate="") | ~Q(retired_at=None) & ~Q(fate=""),
                name="fact_retired_with_a_reason",
            ),
        ]
        indexes = [
            # Programs look up a memory without naming its palace.
            models.Index(fields=["memory", "palace"], name="fact_versions"),
            models.Index(fields=["palace", "subject", "valid_from"], name="fact_by_subject"),
            models.Index(
                fields=["palace", "object_entity"],
                name="fact_by_object",
                condition=Q(object_entity__isnull=False),
            ),
            models.Index(fields=["palace", "-recorded_at"], name="fact_by_time"),
            models.Index(fields=["palace", "supersedes"], name="fact_by_superseded"),
            models.Index(
                fields=["palace"],
                name="fact_unsure",
                condition=Q(retired_at=None, confidence__lt=SURE, opened_by__isnull=False),
            ),
            # The database reads it when it deletes the statements of a message.
            models.Index(
                fields=["palace", "opened_by"],
                name="fact_by_opening",
                condition=Q(opened_by__isnull=False),
            ),
            models.Index(
                fields=["palace", "closed_by"],
                name="fact_by_closing",
                condition=Q(closed_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.text

    def get_absolute_url(self) -> str:
        return address_of("fact_detail", self.memory)

    @property
    def said_order(self) -> SaidOrder:
        """When it was said, to compare with statements; when recorded, if it has no statement."""
        if self.opened_by is not None:
            return self.opened_by.order
        return at_moment(self.settled_at or self.recorded_at)

    @property
    def hash(self) -> str:
        """MD5 of its text, in hexadecimal, by which the fact API compares texts."""
        return hashlib.md5(self.text.encode(), usedforsecurity=False).hexdigest()


class Evidence(models.Model):
    """Evidence of a fact: characters `start` to `end` (exclusive) of a drawer."""

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    fact = ForeignKeyInPalace(
        Fact, models.CASCADE, related_name="evidence", db_constraint=False, db_index=False
    )
    drawer = ForeignKeyInPalace(
        Drawer, models.CASCADE, related_name="evidence", db_constraint=False, db_index=False
    )
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(
                fields=["palace", "fact", "drawer", "start"], name="evidence_span"
            )
        ]
        indexes = [models.Index(fields=["palace", "drawer"], name="evidence_by_drawer")]

    def __str__(self) -> str:
        return f"{self.fact_id} on {self.drawer_id}[{self.start}:{self.end}]"


class FactVector(models.Model):
    """The vector of a fact's text in one embedding space."""

    pk = models.CompositePrimaryKey("palace_id", "space_id", "fact_id")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+", db_index=False)
    fact = ForeignKeyInPalace(
        Fact, models.CASCADE, related_name="vectors", db_constraint=False, db_index=False
    )
    embedding = HalfVectorField(help_text="Of length 1.")

    def __str__(self) -> str:
        return f"vector of {self.fact_id}"


class FactEvent(models.Model):
    """An event of a memory's history. It outlives the fact, but not the palace."""

    class Kind(models.TextChoices):
        ADD = "ADD"
        UPDATE = "UPDATE"
        DELETE = "DELETE"

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)
    memory = models.UUIDField()
    event = models.CharField(max_length=6, choices=Kind)
    old_text = models.TextField(null=True)  # noqa: DJ001 - null and empty differ: the API says so.
    new_text = models.TextField(null=True)  # noqa: DJ001
    why = models.CharField(max_length=LABEL_LENGTH, blank=True)
    by = models.CharField(max_length=20, help_text="Who did it: mining, api, person, …")
    agent = models.CharField(max_length=ID_LENGTH, blank=True)
    run = models.CharField(max_length=ID_LENGTH, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "pk"]
        constraints = [models.UniqueConstraint(fields=["palace", "uuid"], name="fact_event_uuid")]
        indexes = [
            # As with facts: programs look up a memory without naming its palace.
            models.Index(fields=["memory", "palace", "at"], name="fact_event_history"),
            models.Index(fields=["palace", "-at", "-id"], name="fact_event_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.memory}"
