"""Entities and where they are mentioned."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from language.storable import LABEL_LENGTH
from palace.models.hierarchy import Drawer
from palace.models.palace import InPalace, Palace
from palace.models.references import ForeignKeyInPalace
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
