"""Rows that a restore finds already there."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models

from palace.models import Palace


def present(model: type[models.Model], palace: Palace, uuids: Iterable[object]) -> set[object]:
    """The ids that exist in the palace."""
    rows = model._default_manager.filter(palace=palace, uuid__in=list(uuids))
    return set(rows.values_list("uuid", flat=True))
