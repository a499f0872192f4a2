"""Encrypt what is stored under an old secret key again, under the present one.

Row by row, each in a statement of its own: killed at any moment, every row is under the one key or
the other, both can be read, and the next run does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import models

from isolation import row_access
from palace.models import Webhook
from settings_app.models import MemorySettings, SecondStep
from settings_app.secrets import Unreadable, is_current, seal, unseal

# Every column that `settings_app.secrets.seal` fills.
SEALED: tuple[tuple[type[models.Model], str], ...] = (
    (MemorySettings, "sealed_key"),
    (SecondStep, "sealed_secret"),
    (Webhook, "sealed_secret"),
    (Webhook, "former_sealed_secret"),
)


@dataclass(slots=True)
class Rotation:
    """How many secrets there are, by what came of them.

    Attributes:
        unreadable: What neither the present nor an old key opens.
    """

    current: int = 0
    rotated: int = 0
    unreadable: int = 0


def rotate() -> Rotation:
    """Safe to run at any time, also while Loci runs, and as often as one likes."""
    done = Rotation()
    for _ in rotated_one_by_one(done):
        pass
    return done


def rotated_one_by_one(done: Rotation) -> Iterator[None]:
    """Counts each secret in `done` once it is dealt with."""
    with row_access.sweep("rotation"):
        for model, field in SEALED:
            rows: models.QuerySet[Any, tuple[int, str]] = model._default_manager.exclude(
                **{field: ""}
            ).values_list("pk", field)
            for pk, sealed in list(rows):
                _rotate(model, field, pk, sealed, done)
                yield


def _rotate(model: type[models.Model], field: str, pk: int, sealed: str, done: Rotation) -> None:
    if is_current(sealed):
        done.current += 1
        return
    try:
        again = seal(unseal(sealed))
    except Unreadable:
        done.unreadable += 1
        return
    # Unless its owner has just saved another one, which must not be lost.
    unchanged = model._default_manager.filter(pk=pk, **{field: sealed})
    done.rotated += unchanged.update(**{field: again})
