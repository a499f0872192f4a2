"""The change log: which drawers of a palace were written to, so that copies in memory keep up."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from palace.models.palace import Palace


class Change(models.Model):
    """One statement that wrote to drawers or passages of a palace, noted by the database itself.

    Of each palace the last ones are kept. Revisions of one palace ascend in the order in which
    they are committed, and none is given twice: whoever has seen one that is still here has
    missed exactly those above it.
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
