"""Packed postings: which drawers hold a term, for BM25 over one palace."""

from __future__ import annotations

from django.db import models
from django.db.models import F
from django.db.models.functions import Length

from palace.models.packed import PackedField
from palace.models.palace import Palace


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
            # Numbers of drawers and terms are read from it alone.
            models.Index(
                fields=["palace", "term"],
                include=["number", "total", "merged"],
                name="posting_term_sizes",
            )
        ]

    def __str__(self) -> str:
        return f"{self.term} ({self.number})"
