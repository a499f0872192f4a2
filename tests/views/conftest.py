"""A small furnished palace, and a client for each of the two people."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import ClosetFactory, DrawerFactory, RoomFactory, WingFactory


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def bobs(bob):
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def wing(palace):
    return WingFactory(palace=palace, number=9042, name="Efoil rebuild", slug="efoil-rebuild")


@pytest.fixture
def room(wing):
    return RoomFactory(wing=wing, number=9011, title="Evening by the lake")


@pytest.fixture
def closet(room):
    return ClosetFactory(room=room, title="Battery wiring")


@pytest.fixture
def drawer(closet):
    return DrawerFactory(
        room=closet.room,
        closet=closet,
        number=9007,
        text="The wire overheated.",
        tags={"p": ["Derek"]},
    )
