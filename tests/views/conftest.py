"""A small furnished palace, and a client for each of the two people."""

from __future__ import annotations

import html
import re
import tempfile
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

from palace.knowledge.facts.fact_extraction import Scope
from palace.models import Fact
from tests.factories import (
    ClosetFactory,
    DrawerFactory,
    EntityFactory,
    EvidenceFactory,
    FactFactory,
    RoomFactory,
    WingFactory,
)
from tests.views.entity_pages import edge


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


FACTS = "/memory/facts/"


LEARNT = datetime(2025, 3, 1, 12, tzinfo=UTC)


BY_PERSON = Scope("person")


def moment(year, month=1, day=1, hour=12):
    return datetime(year, month, day, hour, tzinfo=UTC)


@pytest.fixture
def user(palace):
    return EntityFactory(palace=palace, name="User", slug="user")


@pytest.fixture
def lisbon(palace):
    return EntityFactory(palace=palace, kind="place", name="Lisbon", slug="lisbon")


@pytest.fixture
def said(drawer):
    return DrawerFactory(
        room=drawer.room, text="Well: I live in Lisbon now,\r\nand <love> it.", said_at=LEARNT
    )


@pytest.fixture
def fact(user, lisbon, said):
    made = FactFactory(
        subject=user,
        predicate="lives_in",
        object="Lisbon",
        object_entity=lisbon,
        text="User lives in Lisbon",
        category="home/place",
        single=True,
        valid_from=LEARNT,
        recorded_at=LEARNT,
    )
    EvidenceFactory(fact=made, drawer=said, start=6, end=22)
    return made


def was_so(user, text="User lived in Porto", **values):
    """A fact that is held no longer, as something else took its place."""
    held = {"fate": Fact.Fate.SUPERSEDED, "retired_at": LEARNT, "valid_to": LEARNT}
    return FactFactory(subject=user, text=text, **{**held, **values})


def address(fact, action="fact_detail"):
    return reverse(action, args=[fact.memory])


def listed(response):
    found = re.findall(r'<p class="fact-text"><a href="[^"]+">(.*?)</a>', response.text)
    return [html.unescape(text) for text in found]


@pytest.fixture
def uploads(monkeypatch, tmp_path):
    """The folder of temporary files, which is empty after every test, whatever became of it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def ann(palace):
    return EntityFactory(palace=palace, name="Ann", slug="ann", aliases=["Annie", "A. Berg"])


@pytest.fixture
def acme(palace):
    return EntityFactory(palace=palace, kind="organisation", name="Acme & Co", slug="acme")


@pytest.fixture
def works(ann, acme):
    return edge(ann, acme, "Ann works at Acme", "works_at", valid_from=moment(2024))
