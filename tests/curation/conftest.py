"""A palace that was mined from our conversations."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from palace.curation.purge import Purge
from palace.models import Drawer, Entity, Fact, Mention
from tests.factories import EntityFactory, EvidenceFactory, FactFactory

MARCH, MAY, JULY = (datetime(2024, month, 1, 12, tzinfo=UTC) for month in (3, 5, 7))


def entity(palace, name, **values):
    return EntityFactory(palace=palace, name=name, slug=name.lower(), **values)


def fact(subject, text, **values):
    """A fact with words of its own."""
    values = {"valid_from": MARCH, "recorded_at": MARCH, "object": text.split()[-1], **values}
    made = FactFactory(subject=subject, text=text, **values)
    EvidenceFactory(fact=made)
    return made


def lives(subject, place, **values):
    return fact(subject, f"{subject} lives in {place}", predicate="lives_in", single=True, **values)


@pytest.fixture
def derek(palace):
    return entity(palace, "Derek", aliases=["Del"])


def held(subject):
    facts = Fact.objects.within(subject.palace).active().filter(subject=subject)
    return sorted(facts.values_list("text", flat=True))


def so(palace, moment):
    return sorted(Fact.objects.within(palace).true_at(moment).values_list("text", flat=True))


def everything(palace):
    """All that entities have, but for what history adds."""
    rows = Fact.objects.within(palace).active()
    return (
        sorted(Entity.objects.filter(palace=palace).values_list("pk", "uuid", "name", "slug")),
        sorted((one.pk, sorted(one.aliases)) for one in Entity.objects.filter(palace=palace)),
        sorted(
            Mention.objects.filter(palace=palace).values_list("entity", "drawer", "start", "end")
        ),
        sorted(
            (str(one.memory), one.text, one.subject_id, one.object_entity_id or 0,
             str(one.valid_from), str(one.valid_to),
             sorted(one.evidence.values_list("drawer", flat=True)))
            for one in rows
        ),
    )  # fmt: skip


def purge(palace, **which):
    """Trash the drawers and purge them; how many were purged."""
    drawers = Drawer.objects.within(palace).filter(**which)
    drawers.update(trashed_at=timezone.now())
    run = Purge(palace)
    assert run.run(drawers)
    return run.count
