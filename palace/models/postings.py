"""Packed postings: which drawers hold a term, for BM25 over one palace."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

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
    drawers = ArrayField(models.BigIntegerField())
    counts = ArrayField(models.SmallIntegerField(), help_text="How often the term is in each.")
    lengths = ArrayField(models.SmallIntegerField(), help_text="How many terms each one has.")

    class Meta:
        indexes = [models.Index(fields=["palace", "term"], name="posting_term")]

    def __str__(self) -> str:
        return f"{self.term} ({len(self.drawers)})"
