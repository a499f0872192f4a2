"""Rows for tests, with as little said as the test needs."""

from __future__ import annotations

from datetime import UTC, datetime

import factory
from django.contrib.auth import get_user_model
from factory.django import DjangoModelFactory

from palace.models import Closet, Drawer, Palace, Room, Wing


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
    number = factory.Sequence(lambda n: n + 1)
    slug = factory.Sequence("wing-{}".format)
    name = factory.Sequence("Wing {}".format)
    kind = Wing.Kind.TOPIC


class RoomFactory(DjangoModelFactory):
    class Meta:
        model = Room

    palace = factory.SelfAttribute("wing.palace")
    wing = factory.SubFactory(WingFactory)
    number = factory.Sequence(lambda n: n + 1)
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
