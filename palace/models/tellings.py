"""Tellings: how messages that wait to be read for facts are to be read."""

from __future__ import annotations

from django.db import models

from palace.models.hierarchy import Drawer
from palace.models.palace import Palace
from palace.storable import ID_LENGTH


class Telling(models.Model):
    """Whom the facts in a message are kept for, and how its teller has it read.

    It is there while the message waits to be read, and goes with the reading: whoever reads in
    place of a process that died reads the same way.
    """

    pk = models.CompositePrimaryKey("palace_id", "drawer_id")
    palace = models.ForeignKey(
        Palace, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    drawer = models.ForeignKey(
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
