"""What is extracted from drawers: entities, where they are mentioned, and statements.

Statements are stored so that they can be judged again.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models

from language.storable import ID_LENGTH, LABEL_LENGTH
from palace.models.hierarchy import Drawer
from palace.models.palace import ForeignKeyInPalace, InPalace, Palace
from settings_app.fast_reverse import address_of


class Entity(InPalace):
    """A person, place or thing that messages mention."""

    class Kind(models.TextChoices):
        PERSON = "person"
        PLACE = "place"
        ORGANISATION = "organisation"
        PROJECT = "project"
        EVENT = "event"
        ITEM = "item"

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

    def get_absolute_url(self) -> str:
        return address_of("entity_detail", self.uuid)


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


class Statement(models.Model):
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
