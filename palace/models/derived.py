"""What is derived from drawers: entities, where they are mentioned, statements, and episodes.

Statements are stored so that they can be judged again. Episodes are short summaries of
conversations, with their vectors.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from pgvector.django import HalfVectorField

from language.facts import USER
from language.storable import ID_LENGTH, LABEL_LENGTH
from palace.models.hierarchy import Drawer
from palace.models.palace import (
    ForeignKeyInPalace,
    InPalace,
    InPalaceQuerySet,
    Palace,
    SavedInPalace,
)
from palace.models.recall import EmbeddingSpace
from settings_app.fast_reverse import address_of

YOU, YOUR, USERS = "You", "Your", f"{USER}'s"
# Rooms that were mined before there were episodes wait for theirs since then: nobody has asked
# for a model to be paid for them.
BEFORE_EPISODES = datetime(1970, 1, 1, tzinfo=UTC)


class Entity(InPalace):
    """A person, pet, place or thing that messages mention."""

    class Kind(models.TextChoices):
        PERSON = "person"
        PET = "pet"
        PLACE = "place"
        ORGANISATION = "organisation"
        PROJECT = "project"
        EVENT = "event"
        ITEM = "item"

    # Those who are listed where the people of a conversation are.
    BEINGS = (Kind.PERSON, Kind.PET)

    kind = models.CharField(max_length=12, choices=Kind.choices)
    slug = models.SlugField(max_length=LABEL_LENGTH, allow_unicode=True, db_index=False)
    name = models.CharField(max_length=LABEL_LENGTH)
    aliases = ArrayField(models.CharField(max_length=LABEL_LENGTH), default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "entities"
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="entity_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="entity_uuid"),
            models.UniqueConstraint(fields=["palace", "kind", "slug"], name="entity_slug"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def display_name(self) -> str:
        """The name for readers: the owner of the palace reads You, and Your for what is theirs."""
        if self.kind == self.Kind.PERSON and self.name == USER:
            return YOU
        if self.name.startswith(f"{USERS} "):
            return YOUR + self.name.removeprefix(USERS)
        return self.name

    def get_absolute_url(self) -> str:
        return address_of("entity_detail", self.uuid)


def stored_name(text: str) -> str:
    """A name that a reader types, as facts store it: the opposite of `Entity.display_name`."""
    folded = text.casefold()
    if folded == YOU.casefold():
        return USER
    if folded.partition(" ")[0] == YOUR.casefold():
        return USERS + text[len(YOUR) :]
    return text


class Mention(models.Model):
    """The position of an entity's name in a drawer."""

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    entity = ForeignKeyInPalace(
        Entity, models.CASCADE, related_name="mentions", db_constraint=False, db_index=False
    )
    drawer = ForeignKeyInPalace(
        Drawer, models.CASCADE, related_name="mentions", db_constraint=False, db_index=False
    )
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["palace", "drawer", "start", "entity"], name="mention_span"
            )
        ]
        indexes = [models.Index(fields=["palace", "entity"], name="mention_by_entity")]

    def __str__(self) -> str:
        return f"{self.entity_id} in {self.drawer_id}"


SaidOrder = tuple[datetime, str, str, int, int]


class Statement(SavedInPalace):
    """One candidate as extracted from a message. Facts are the outcome of all statements.

    A message may arrive after others that were said later. The statements of its scope are then
    judged again in the order in which they were said, so that the order of arrival has no effect.
    They go with the message.
    """

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    drawer = ForeignKeyInPalace(
        Drawer, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    ordinal = models.PositiveIntegerField(help_text="Order within the message, from 0.")
    by = models.CharField(max_length=20, help_text="Which door brought it: mining, api, sdk …")
    agent = models.CharField(max_length=ID_LENGTH, blank=True)
    run = models.CharField(max_length=ID_LENGTH, blank=True)
    metadata = models.JSONField(default=dict, help_text="The caller's own.")
    content = models.JSONField(help_text="The candidate; its words by message and offsets.")
    judged = models.JSONField(null=True, help_text="What a model decided; null: rules judge.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="statement_in_palace"),
            models.UniqueConstraint(
                fields=["palace", "drawer", "ordinal"], name="statement_of_drawer"
            ),
        ]
        indexes = [models.Index(fields=["palace", "agent", "run"], name="statement_by_scope")]

    def __str__(self) -> str:
        return f"statement {self.ordinal} of {self.drawer_id}"

    @property
    def order(self) -> SaidOrder:
        """Its sort key among all statements: by time, then by conversation and position."""
        drawer = self.drawer
        return (
            *(drawer.said_at, drawer.conversation, drawer.source),
            *(drawer.position, self.ordinal),
        )


def at_moment(moment: datetime) -> SaidOrder:
    """The sort key of something that happened outside of any conversation."""
    return (moment, "", "", 0, 0)


class Telling(models.Model):
    """Scope and extraction options of a message that was not read for facts yet.

    It is deleted when the message is read. If a process dies, the next one reads the message in
    the same way.
    """

    pk = models.CompositePrimaryKey("palace_id", "drawer_id")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    drawer = ForeignKeyInPalace(
        Drawer, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    by = models.CharField(max_length=20, help_text="Which door brought it: api, sdk …")
    agent = models.CharField(max_length=ID_LENGTH, blank=True)
    run = models.CharField(max_length=ID_LENGTH, blank=True)
    metadata = models.JSONField(default=dict, help_text="The caller's own.")
    prompt = models.TextField(blank=True, help_text="In place of our instructions for reading.")
    judging_prompt = models.TextField(blank=True, help_text="In place of ours for judging.")
    filters = models.JSONField(null=True, help_text="What it is judged beside has to meet them.")

    def __str__(self) -> str:
        return f"telling of {self.drawer_id}"


class EpisodeQuerySet(InPalaceQuerySet["Episode"]):
    def kept(self) -> Self:
        """Episodes outside the trash."""
        return self.filter(trashed_at=None)

    def derived(self) -> Self:
        """Episodes that mining wrote."""
        return self.exclude(made_by=Episode.Maker.CALLER)

    def stored(self) -> Self:
        """Episodes that callers stored."""
        return self.filter(made_by=Episode.Maker.CALLER)

    def of_agent(self, agent: str) -> Self:
        """Episodes of this agent; of all agents if it is empty."""
        return self.filter(agent=agent) if agent else self

    def begun_by(self, moment: datetime) -> Self:
        """Episodes of conversations that had begun by then, or at an unknown time."""
        return self.filter(Q(started_at=None) | Q(started_at__lte=moment))

    def in_order(self) -> Self:
        return self.order_by("created_at", "pk")


class Episode(InPalace):
    """The summary of one conversation: derived from its drawers, or what a caller has stored.

    It names its conversation as drawers do, so it stays where rooms move, and where nothing was
    filed. Of those that mining writes there is one a conversation; callers store as many as they
    like.
    """

    class Maker(models.TextChoices):
        LOCAL = "local", "Local rules"
        MODEL = "model", "A language model"
        CALLER = "caller", "Whoever stored it"

    source = models.CharField(
        max_length=50, blank=True, help_text="As of drawers; empty where a caller has stored it."
    )
    conversation = models.CharField(
        max_length=ID_LENGTH, help_text="The conversation's id at the source."
    )
    agent = models.CharField(max_length=ID_LENGTH, blank=True)
    summary = models.TextField()
    key_decisions = models.JSONField(default=list)
    entities = models.JSONField(default=list)
    tools = models.JSONField(default=list)
    made_by = models.CharField(max_length=6, choices=Maker)
    model = models.CharField(max_length=200, blank=True, help_text="Which one, if one made it.")
    input_hash = models.CharField(
        max_length=64, blank=True, help_text="Of what it was made from; what is the same stays."
    )
    messages = models.PositiveIntegerField(
        null=True, help_text="How many it is of; null where the caller has not said."
    )
    started_at = models.DateTimeField(null=True, help_text="When the first of them was said.")
    ended_at = models.DateTimeField(null=True, help_text="When the last of them was said.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    trashed_at = models.DateTimeField(
        null=True, help_text="Since when words it may hold are in the trash."
    )

    objects = EpisodeQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="episode_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="episode_uuid"),
            models.UniqueConstraint(
                fields=["palace", "source", "conversation"],
                condition=~Q(made_by="caller"),
                name="episode_one_derived",
            ),
        ]
        indexes = [
            models.Index(fields=["palace", "conversation"], name="episode_by_conversation"),
            models.Index(fields=["palace", "agent", "-ended_at"], name="episode_by_agent"),
        ]

    def __str__(self) -> str:
        return self.summary


class EpisodeVector(models.Model):
    """The vector of an episode's text in one embedding space."""

    pk = models.CompositePrimaryKey("palace_id", "space_id", "episode_id")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+", db_index=False)
    episode = ForeignKeyInPalace(
        Episode, models.CASCADE, related_name="vectors", db_constraint=False, db_index=False
    )
    embedding = HalfVectorField(help_text="Of length 1.")

    def __str__(self) -> str:
        return f"vector of {self.episode_id}"
