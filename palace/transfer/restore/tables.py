"""What of a restore is there already."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models

from palace.models import Palace


def present(model: type[models.Model], palace: Palace, uuids: Iterable[object]) -> set[object]:
    """Those of the ids that a row of the palace has."""
    rows = model._default_manager.filter(palace=palace, uuid__in=list(uuids))
    return set(rows.values_list("uuid", flat=True))
