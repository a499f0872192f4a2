"""What recall reads and what it leaves: the search index, traces, and the cases that test it.

The index: vectors of passages, packed postings for BM25, and the log of changes. A trace is the
record of one recall; the owner tests it with cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func
from django.db.models.functions import MD5, Length
from pgvector.django import HalfVectorField

from palace.models.hierarchy import Drawer
from palace.models.packed import BitsField, PackedField, pack_table, unpack_table
from palace.models.palace import ForeignKeyInPalace, InPalace, InPalaceQuerySet, Palace


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


class HitsField(models.JSONField):
    """The hits of a trace, each an object with the share of each signal.

    The shares of all hits are stored as one table in the first of them, because the database
    takes longer for hundreds of numbers than for all the rest. Older rows have their own.
    """

    TABLE = "shares"

    def deconstruct(self) -> Any:
        """In the table it is a field like others, and migrations need no class of ours."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    @classmethod
    def packed(
        cls, hits: list[dict[str, Any]], signals: Sequence[Mapping[str, float]]
    ) -> list[dict[str, Any]]:
        """The hits as they are stored, with these shares of the signals."""
        if len({tuple(each) for each in signals}) != 1:
            rounded = ({name: round(share, 4) for name, share in own.items()} for own in signals)
            return [{**hit, "signals": own} for hit, own in zip(hits, rounded, strict=True)]
        table = pack_table(np.array([list(own.values()) for own in signals]))
        first = {**hits[0], cls.TABLE: {"signals": list(signals[0]), "table": table}}
        return [first, *hits[1:]]

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return self.unpacked(super().from_db_value(value, expression, connection))

    @classmethod
    def unpacked(cls, hits: Any) -> Any:
        """The stored hits, each with its shares of the signals."""
        if not isinstance(hits, list) or not hits:
            return hits
        if not isinstance(hits[0], dict) or cls.TABLE not in hits[0]:
            return hits
        stored = hits[0].pop(cls.TABLE)
        for hit, own in zip(hits, unpack_table(stored["table"], len(hits)), strict=True):
            hit["signals"] = dict(zip(stored["signals"], own, strict=True))
        return hits


class RecollectionTrace(InPalace):
    query = models.TextField()
    recipe = models.CharField(max_length=50)
    now = models.DateTimeField(help_text="The moment the question's words of time refer to.")
    hits = HitsField(
        help_text="Best first: drawer, pointer, score, share of each signal, why not in the block."
    )
    facts = models.JSONField(
        default=list,
        help_text="What stood before them as known: memory, drawer it cites, pointer, score.",
    )
    carried = models.JSONField(
        default=list,
        help_text="What stood there from earlier turns: item, drawer, pointer, turn.",
    )
    candidates = models.JSONField(
        help_text="The best of those that were cut: the names of the signals, and of each a row of "
        "its drawer's key, score, why it was cut, place by score, and share of each signal."
    )
    reading = models.JSONField(default=dict, help_text="How the question was understood.")
    figures = models.JSONField(default=dict, help_text="How many were looked at, and how many cut.")
    context = models.TextField(blank=True, help_text="The block given to a model; may be empty.")
    notes = models.JSONField(default=list, help_text="What was degraded or skipped, in sentences.")
    duration_ms = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [models.UniqueConstraint(fields=["palace", "uuid"], name="trace_uuid")]
        indexes = [models.Index(fields=["palace", "-created_at"], name="trace_by_time")]

    def __str__(self) -> str:
        return self.query[:80]

    def cut(self) -> list[dict[str, Any]]:
        """The best rejected candidates: drawer, score, cut (why), signals, and place if any."""
        stored = self.candidates
        rows = _older_candidates(stored) if "rows" in stored else _candidates(stored)
        return [
            {
                "drawer": drawer,
                "score": score,
                "cut": why,
                "signals": dict(zip(stored["signals"], shares, strict=True)),
                **({"place": int(place)} if place else {}),
            }
            for drawer, why, place, score, *shares in rows
        ]


def _candidates(stored: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Of each rejected candidate the drawer, why, its place or 0, its score and its shares.

    Stored are the drawers, each reason with how many they are, and a table of the numbers: the
    database takes several times as long for a row of JSON for each.
    """
    reasons = chain.from_iterable([why] * number for why, number in stored["why"])
    numbers = unpack_table(stored["table"], len(stored["drawers"]))
    for drawer, why, own in zip(stored["drawers"], reasons, numbers, strict=True):
        yield drawer, why, *own


def _older_candidates(stored: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The same of older traces: rows, which in the oldest go on with their shares."""
    rows, packed = stored["rows"], stored.get("shares")
    shares = [row[4:] for row in rows] if packed is None else unpack_table(packed, len(rows))
    for (drawer, score, why, place, *_), own in zip(rows, shares, strict=True):
        yield drawer, why, place, score, *own


class RecallCase(InPalace):
    """A test question, as asked on one day; on another day it is another case."""

    query = models.TextField()
    now = models.DateTimeField(help_text="The moment the question's words of time refer to.")
    day = models.DateField(help_text="The day of `now` by the owner's calendar.")
    tried_at = models.DateTimeField(null=True, help_text="When recall was last tried on it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InPalaceQuerySet["RecallCase"].as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "id"], name="case_in_palace"),
            models.UniqueConstraint(fields=["palace", "uuid"], name="case_uuid"),
            # Hashed, as a question may be too long for an index.
            models.UniqueConstraint("palace", "day", MD5("query"), name="case_question"),
        ]

    def __str__(self) -> str:
        return self.query[:80]


class ExpectedDrawer(models.Model):
    """A drawer that recall should find for a case. It leaves the case when it is purged."""

    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    case = ForeignKeyInPalace(
        RecallCase, models.CASCADE, related_name="expected", db_constraint=False, db_index=False
    )
    drawer = ForeignKeyInPalace(
        Drawer, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    place = models.PositiveIntegerField(
        null=True, help_text="Where it came at the last try, from 1; null where it did not."
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["palace", "case", "drawer"], name="expected_once")
        ]
        indexes = [models.Index(fields=["palace", "drawer"], name="expected_drawer")]

    def __str__(self) -> str:
        return f"{self.drawer_id} for {self.case_id}"
