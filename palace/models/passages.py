"""Passages: stretches of drawers with their vectors, in the space of one embedding model."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Func
from pgvector.django import HalfVectorField

from palace.models.hierarchy import Drawer
from palace.models.packed import BitsField
from palace.models.palace import Palace


class EmbeddingSpace(models.Model):
    """The vectors of one embedding model. Exactly one space is active: recall searches that one.

    A second space can be built beside it, passage by passage, while recall goes on; switching
    models is then a change of one row.
    """

    provider = models.CharField(max_length=200, help_text="local, a preset's name or a base URL.")
    model = models.CharField(max_length=200)
    dimensions = models.PositiveIntegerField()
    active = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model", "dimensions"], name="embedding_space_model"
            ),
            models.UniqueConstraint(
                fields=["active"],
                condition=models.Q(active=True),
                name="embedding_space_one_active",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} ({self.dimensions})"


class Passage(models.Model):
    """A stretch of a drawer small enough to embed. Narrow on purpose: recall scans it whole."""

    pk = models.CompositePrimaryKey("palace_id", "space_id", "drawer_id", "ordinal")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+", db_index=False)
    drawer = models.ForeignKey(
        Drawer, models.CASCADE, related_name="passages", db_constraint=False, db_index=False
    )
    ordinal = models.PositiveSmallIntegerField()
    start = models.PositiveIntegerField(help_text="Offset of its first character in the drawer.")
    end = models.PositiveIntegerField(help_text="Offset past its last character.")
    embedding = HalfVectorField(null=True, help_text="Of length 1; null until it could be made.")
    # Also part of the primary key's index, which large palaces are searched by without a look at
    # the rows.
    bits = models.GeneratedField(
        expression=Func(F("embedding"), function="binary_quantize"),
        output_field=BitsField(),
        db_persist=True,
        null=True,
        help_text="Which of its numbers are above zero.",
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["palace", "space"],
                name="passage_unembedded",
                condition=models.Q(embedding=None),
            )
        ]

    def __str__(self) -> str:
        return f"{self.drawer_id}[{self.start}:{self.end}]"
