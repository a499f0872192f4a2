"""The search index: vectors of passages, packed postings for BM25, and the log of changes."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func
from django.db.models.functions import Length
from pgvector.django import HalfVectorField

from palace.models.hierarchy import Drawer
from palace.models.packed import BitsField, PackedField
from palace.models.palace import ForeignKeyInPalace, Palace


class EmbeddingSpace(models.Model):
    """The vectors of one embedding model. Recall searches the one active space.

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
    """A stretch of a drawer, small enough to embed. Few columns, as recall scans the table."""

    pk = models.CompositePrimaryKey("palace_id", "space_id", "drawer_id", "ordinal")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+", db_index=False)
    drawer = ForeignKeyInPalace(
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


class Posting(models.Model):
    """A segment of a term's drawers: parallel arrays of drawer keys, term counts and lengths.

    Segments are only ever added, merged or rewritten without purged drawers, so appending never
    waits. The empty term lists every drawer once and so gives their number and mean length.
    """

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    term = models.CharField(max_length=64)
    drawers = PackedField(kind="i8")
    counts = PackedField(kind="i2", help_text="How often the term is in each.")
    lengths = PackedField(kind="i2", help_text="How many terms each one has.")
    number = models.GeneratedField(
        expression=Length(F("drawers")) / 8,
        output_field=models.IntegerField(),
        db_persist=True,
        help_text="Of the drawers.",
    )
    total = models.IntegerField(
        default=0, help_text="Sum of the lengths, for the empty term; else 0."
    )
    merged = models.BooleanField(
        default=False, help_text="Written by compaction, and not touched since."
    )

    class Meta:
        indexes = [
            # Counts of drawers and terms are read by an index-only scan of it.
            models.Index(
                fields=["palace", "term"],
                include=["number", "total", "merged"],
                name="posting_term_sizes",
            )
        ]

    def __str__(self) -> str:
        return f"{self.term} ({self.number})"


class Change(models.Model):
    """One SQL statement that wrote to drawers or passages of a palace, recorded by a trigger.

    Copies of the index in memory follow it. Only the latest changes of a palace are stored.
    Revisions ascend in the order of commits and are unique: a reader that has seen one that is
    still stored has missed exactly those above it.
    """

    pk = models.CompositePrimaryKey("palace_id", "revision")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    revision = models.BigIntegerField()
    drawers = ArrayField(
        models.BigIntegerField(), null=True, help_text="Their keys; null where they are too many."
    )

    def __str__(self) -> str:
        return f"change {self.revision} of palace {self.palace_id}"
