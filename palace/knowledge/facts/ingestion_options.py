"""How messages are to be read, kept beside them until they have been."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from palace.models import Drawer, Palace, Telling


@dataclass(frozen=True, slots=True)
class Scope:
    """What facts are kept with, and judged beside: those of the same agent and run only.

    Attributes:
        by: Who remembers: mining, api, sdk, person …; for the history.
        metadata: The caller's own, kept with each fact that is made.
    """

    by: str
    agent: str = ""
    run: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """How messages are read and judged, where whoever tells them has it otherwise.

    Attributes:
        prompt: What a model is told to look for, in place of our own instructions.
        judging_prompt: How a model is told to judge, in place of our own instructions.
        filters: Of what is known, only what meets them is judged beside; as
            `palace.knowledge.facts.filters` has them, in what JSON can write.
    """

    prompt: str = ""
    judging_prompt: str = ""
    filters: Mapping[str, Any] | None = None


DEFAULT_OPTIONS = ExtractionOptions()
Told = tuple[Scope, ExtractionOptions]


def keep(
    palace: Palace, drawers: Sequence[Drawer], scope: Scope, options: ExtractionOptions
) -> None:
    """Keep it for whoever comes to read these drawers; call it in the transaction that files them.

    What has been kept for one of them before stays.
    """
    rows = [
        Telling(
            palace=palace,
            drawer=drawer,
            by=scope.by,
            agent=scope.agent,
            run=scope.run,
            metadata=dict(scope.metadata),
            prompt=options.prompt,
            judging_prompt=options.judging_prompt,
            filters=options.filters,
        )
        for drawer in drawers
    ]
    Telling.objects.bulk_create(rows, ignore_conflicts=True)


def grouped_by_options(
    palace: Palace, drawers: Sequence[Drawer], otherwise: Scope
) -> Iterator[tuple[Scope, ExtractionOptions, list[Drawer]]]:
    """The drawers in their order, in stretches that are to be read in the same way.

    Args:
        otherwise: For those of which nothing was told.
    """
    rows = Telling.objects.filter(palace=palace, drawer__in=[drawer.pk for drawer in drawers])
    told = {row.drawer_id: _read(row) for row in rows}
    plain = otherwise, DEFAULT_OPTIONS
    for (scope, options), stretch in groupby(drawers, lambda one: told.get(one.pk, plain)):
        yield scope, options, list(stretch)


def have_options(palace: Palace, drawers: Sequence[Drawer]) -> bool:
    """Whether any of them waits to be read in a way of its own."""
    keys = [drawer.pk for drawer in drawers]
    return Telling.objects.filter(palace=palace, drawer__in=keys).exists()


def settle(palace: Palace, drawers: Collection[int]) -> None:
    """They have been read; call it in the transaction that says so."""
    Telling.objects.filter(palace=palace, drawer__in=drawers).delete()


def _read(row: Telling) -> Told:
    return (
        Scope(row.by, row.agent, row.run, row.metadata),
        ExtractionOptions(row.prompt, row.judging_prompt, row.filters),
    )
