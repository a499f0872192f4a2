"""The record of each recall: what was asked, what was found, and why."""

from __future__ import annotations

from typing import Any

from django.db import models

from palace.models.palace import InPalace


class RecollectionTrace(InPalace):
    query = models.TextField()
    recipe = models.CharField(max_length=50)
    now = models.DateTimeField(help_text="The moment the question's words of time refer to.")
    hits = models.JSONField(
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
        """The best of those that were cut: drawer, score, cut (why), signals, and maybe place."""
        signals = self.candidates["signals"]
        return [
            {
                "drawer": drawer,
                "score": score,
                "cut": why,
                "signals": dict(zip(signals, shares, strict=True)),
                **({} if place is None else {"place": place}),
            }
            for drawer, score, why, place, *shares in self.candidates["rows"]
        ]
