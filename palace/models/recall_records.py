"""Records of recall: the trace of each one, and the cases that the owner tests it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from django.db import models
from django.db.models.functions import MD5

from palace.models.hierarchy import Drawer
from palace.models.packed import pack_table, unpack_table
from palace.models.palace import ForeignKeyInPalace, InPalace, InPalaceQuerySet, Palace


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
        hits = super().from_db_value(value, expression, connection)
        if not isinstance(hits, list) or not hits:
            return hits
        if not isinstance(hits[0], dict) or self.TABLE not in hits[0]:
            return hits
        stored = hits[0].pop(self.TABLE)
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
