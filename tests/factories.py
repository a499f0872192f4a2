"""Rows for tests, with as little said as the test needs."""

from __future__ import annotations

from datetime import UTC, datetime

import factory
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import connection
from factory.django import DjangoModelFactory

from palace.models import Closet, Drawer, Entity, Evidence, Fact, Mention, Palace, Room, Wing


class UserFactory(DjangoModelFactory):
    class Meta:
        model = get_user_model()

    username = factory.Sequence("user{}".format)


class PalaceFactory(DjangoModelFactory):
    class Meta:
        model = Palace

    owner = factory.SubFactory(UserFactory)


class WingFactory(DjangoModelFactory):
    class Meta:
        model = Wing

    palace = factory.SubFactory(PalaceFactory)
    # Beyond those that mining gives in the same palace.
    number = factory.Sequence(lambda n: n + 5001)
    slug = factory.Sequence("wing-{}".format)
    name = factory.Sequence("Wing {}".format)
    kind = Wing.Kind.TOPIC


class RoomFactory(DjangoModelFactory):
    class Meta:
        model = Room

    palace = factory.SelfAttribute("wing.palace")
    wing = factory.SubFactory(WingFactory)
    number = factory.Sequence(lambda n: n + 5001)
    source = "plain"
    external_id = factory.Sequence("conversation-{}".format)
    title = factory.Sequence("Room {}".format)
    started_at = datetime(2025, 1, 1, tzinfo=UTC)
    ended_at = datetime(2025, 1, 1, tzinfo=UTC)


class ClosetFactory(DjangoModelFactory):
    class Meta:
        model = Closet

    palace = factory.SelfAttribute("room.palace")
    room = factory.SubFactory(RoomFactory)
    slug = factory.Sequence("closet-{}".format)
    title = factory.Sequence("Closet {}".format)


class DrawerFactory(DjangoModelFactory):
    class Meta:
        model = Drawer

    palace = factory.SelfAttribute("room.palace")
    room = factory.SubFactory(RoomFactory)
    closet = factory.SubFactory(ClosetFactory, room=factory.SelfAttribute("..room"))
    number = factory.Sequence(lambda n: n + 1)
    source = factory.SelfAttribute("room.source")
    conversation = factory.SelfAttribute("room.external_id")
    external_id = factory.Sequence(str)
    position = factory.Sequence(lambda n: n)
    role = "user"
    text = factory.Sequence("Message {}".format)
    said_at = datetime(2025, 1, 1, tzinfo=UTC)


class EntityFactory(DjangoModelFactory):
    class Meta:
        model = Entity

    palace = factory.SubFactory(PalaceFactory)
    kind = Entity.Kind.PERSON
    slug = factory.Sequence("entity-{}".format)
    name = factory.Sequence("Entity {}".format)


class FactFactory(DjangoModelFactory):
    """A fact that is held; give `retired_at` and `fate` for one that is not."""

    class Meta:
        model = Fact

    palace = factory.SelfAttribute("subject.palace")
    subject = factory.SubFactory(EntityFactory)
    type = Fact.Type.FACT
    predicate = "knows"
    text = factory.Sequence("Statement {}".format)
    confidence = 0.8
    single = False
    recorded_at = datetime(2025, 1, 1, tzinfo=UTC)


class EvidenceFactory(DjangoModelFactory):
    """The words a fact rests on: all of its drawer's unless given."""

    class Meta:
        model = Evidence

    palace = factory.SelfAttribute("fact.palace")
    fact = factory.SubFactory(FactFactory)
    drawer = factory.SubFactory(
        DrawerFactory,
        room=factory.SubFactory(
            RoomFactory,
            wing=factory.SubFactory(WingFactory, palace=factory.SelfAttribute("....palace")),
        ),
    )
    start = 0
    end = factory.LazyAttribute(lambda evidence: len(evidence.drawer.text))


class MentionFactory(DjangoModelFactory):
    """A place where an entity is named; the whole drawer unless given."""

    class Meta:
        model = Mention

    palace = factory.SelfAttribute("entity.palace")
    entity = factory.SubFactory(EntityFactory)
    drawer = factory.SubFactory(
        DrawerFactory,
        room=factory.SubFactory(
            RoomFactory,
            wing=factory.SubFactory(WingFactory, palace=factory.SelfAttribute("....palace")),
        ),
    )
    start = 0
    end = factory.LazyAttribute(lambda mention: len(mention.drawer.text))


def rows_of_palace(palace, *, without=()):
    """Every row of a palace as text, by model and in order; asked for at once."""
    tables = {
        model.__name__: model._meta.db_table
        for model in apps.get_models()
        if model.__name__ not in without
        and any(field.name == "palace" for field in model._meta.fields)
    }
    rows = {name: [] for name in tables}
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{name}', each::text FROM \"{table}\" each"  # noqa: S608 - our own names.
                f" WHERE palace_id = {palace.pk}"
                for name, table in tables.items()
            )
        )
        for name, row in sorted(cursor):
            rows[name].append(row)
    return rows
