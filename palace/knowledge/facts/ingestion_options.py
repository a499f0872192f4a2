"""Scope and options of extraction, stored with messages until they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from palace.models import Drawer, Palace, Telling


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose facts these are; facts are judged only against those of the same agent and run.

    Attributes:
        by: Who stores them, for the history: mining, api, sdk, person …
        metadata: The caller's own, stored with each new fact.
    """

    by: str
    agent: str = ""
    run: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """How messages are read and judged, where the caller overrides the defaults.

    Attributes:
        prompt: Replaces our instructions for extraction by a model.
        judging_prompt: Replaces our instructions for judging by a model.
        filters: Judge only against known facts that match; in the JSON form that
            `palace.knowledge.facts.filters` reads.
    """

    prompt: str = ""
    judging_prompt: str = ""
    filters: Mapping[str, Any] | None = None


DEFAULT_OPTIONS = ExtractionOptions()
ScopedOptions = tuple[Scope, ExtractionOptions]


def store_options(
    palace: Palace, drawers: Sequence[Drawer], scope: Scope, options: ExtractionOptions
) -> None:
    """Store scope and options of drawers; call it in the transaction that files them.

    Options stored for a drawer before stay.
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
    palace: Palace, drawers: Sequence[Drawer], default: Scope
) -> Iterator[tuple[Scope, ExtractionOptions, list[Drawer]]]:
    """Split drawers, in order, into stretches with the same scope and options.

    Args:
        default: The scope of drawers without stored options; their agent stays theirs.
    """
    rows = Telling.objects.filter(palace=palace, drawer__in=[drawer.pk for drawer in drawers])
    stored = {row.drawer_id: _read(row) for row in rows}

    def options_of(drawer: Drawer) -> ScopedOptions:
        plain = replace(default, agent=drawer.agent), DEFAULT_OPTIONS
        return stored.get(drawer.pk, plain)

    for (scope, options), stretch in groupby(drawers, options_of):
        yield scope, options, list(stretch)


def have_options(palace: Palace, drawers: Sequence[Drawer]) -> bool:
    """Whether any of the drawers has stored options, or belongs to an agent."""
    if any(drawer.agent for drawer in drawers):
        return True
    keys = [drawer.pk for drawer in drawers]
    return Telling.objects.filter(palace=palace, drawer__in=keys).exists()


def delete_options(palace: Palace, drawers: Collection[int]) -> None:
    """Delete the options of drawers; call it in the transaction that marks them as read."""
    Telling.objects.filter(palace=palace, drawer__in=drawers).delete()


def _read(row: Telling) -> ScopedOptions:
    return (
        Scope(row.by, row.agent, row.run, row.metadata),
        ExtractionOptions(row.prompt, row.judging_prompt, row.filters),
    )
