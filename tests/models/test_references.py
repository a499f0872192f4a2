"""What a reference within a palace asks of the database names the palace beside the key.

So it goes to one machine, where the tables are spread over machines by it.
"""

from __future__ import annotations

import pytest
from django.db.models import Prefetch
from django.db.models.functions import Length
from django.utils import timezone

from palace.knowledge.facts.filters import condition_of
from palace.models import Drawer, Fact, Palace, Proposal, Room, Statement, Wing
from tests.factories import DrawerFactory, EntityFactory, FactFactory
from tests.isolation.statements import at_several, collected

pytestmark = pytest.mark.django_db


@pytest.fixture
def wing(palace):
    return Wing.objects.create(palace=palace, number=1, slug="bees", name="Bees", kind="topic")


@pytest.fixture
def room(wing):
    started = wing.created_at
    return Room.objects.create(
        palace=wing.palace, wing=wing, number=1, source="chat", external_id="hive", title="Hive",
        started_at=started, ended_at=started,
    )  # fmt: skip


ASKED = {
    "its wing": lambda room: Room.objects.get(palace=room.palace_id, pk=room.pk).wing,
    "a wing's rooms": lambda room: list(room.wing.rooms.all()),
    "a join": lambda room: list(
        Drawer.objects.filter(palace=room.palace_id, room__wing__slug="bees")
    ),
    "a join the other way": lambda room: list(
        Wing.objects.filter(palace=room.palace_id, rooms__title="Hive")
    ),
    "wings of many rooms": lambda room: list(
        Room.objects.filter(palace=room.palace_id).prefetch_related("wing")
    ),
    "rooms of many wings": lambda room: list(
        Wing.objects.filter(palace=room.palace_id).prefetch_related("rooms")
    ),
    "the first rooms of many wings": lambda room: list(
        Wing.objects.filter(palace=room.palace_id).prefetch_related(
            Prefetch("rooms", Room.objects.all()[:3], to_attr="first_rooms")
        )
    ),
    "a field that was left out": lambda room: (
        Room.objects.filter(palace=room.palace_id).only("palace").get().title
    ),
    "what is remembered": lambda room: list(Fact.objects.within(room.palace).remembered()),
    "what was so by then": lambda room: list(
        Fact.objects.within(room.palace).said_by(room.started_at)
    ),
    "what was first said by then": lambda room: list(
        Fact.objects.within(room.palace).filter(
            condition_of({"field": "created_at", "operator": "lt", "value": "2026-01-01"})
        )
    ),
    "a statement's change": lambda room: Statement.objects.create(
        palace=room.palace, drawer=DrawerFactory(room=room), ordinal=0, by="api", content={}
    ).save(update_fields=["content"]),
    "what waits": lambda room: list(Proposal.objects.within(room.palace).waiting()),
    "a change": lambda room: room.save(update_fields=["title"]),
    "what is there now": lambda room: room.refresh_from_db(),
}


def test_the_palace_is_named(room):
    with collected(sweeps=True) as found:
        for ask in ASKED.values():
            ask(room)
    assert len(found) > len(ASKED)
    assert at_several(found) == []


def test_a_subquery_is_of_the_palace_of_each_row(palace, bob):
    of_bob = Palace.objects.own(bob)
    about = [EntityFactory(palace=each) for each in (palace, of_bob)]
    kept = [FactFactory(subject=each) for each in about]
    now = timezone.now()
    gone = [FactFactory(subject=each, fate="deleted", retired_at=now) for each in about]
    # Memories of two palaces may have the same id.
    Fact.objects.filter(pk=kept[0].pk).update(memory=gone[1].memory)
    everywhere = Fact.objects.remembered()
    assert {*everywhere} == {*kept}
    assert {*everywhere.filter(palace=of_bob)} == {*Fact.objects.within(of_bob).remembered()}
    counted = Fact.objects.annotate(size=Length("object")).filter(size=0, palace=palace)
    assert {*counted.remembered()} == {kept[0]}
    assert {*Fact.objects.filter(palace__in=[palace, of_bob]).remembered()} == {*kept}


def test_what_is_found_through_a_reference_is_the_same(wing, room):
    [found] = Wing.objects.prefetch_related("rooms").filter(palace=wing.palace)
    assert list(found.rooms.all()) == list(found.rooms.filter(number=1)) == [room]
    assert Room.objects.select_related("wing").get(pk=room.pk).wing == wing
    made = wing.rooms.create(
        palace=wing.palace, number=2, source="chat", external_id="two", title="Two",
        started_at=room.started_at, ended_at=room.ended_at,
    )  # fmt: skip
    assert made.wing == wing
    assert wing.rooms.count() == 2


def test_a_row_that_was_loaded_without_its_palace_is_saved_all_the_same(room):
    part = Room.objects.only("title").get(pk=room.pk)
    part.title = "Hives"
    part.save(update_fields=["title"])
    room.refresh_from_db()
    assert room.title == "Hives"
