"""The schema names each operation once, and its examples are requests that work."""

from __future__ import annotations

import re

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from api.rest.openapi import A_BATCH, A_DRAWER, A_WING, EXAMPLES, METHODS, OPERATION_NAMES
from palace.curation.trash import moment_of
from palace.models import Fact, Palace, Webhook
from tests.factories import DrawerFactory, RoomFactory, WingFactory

PLACES = {"kind": "patrol", "name": "desk", "key": "tripod", "conversation_id": "monday"}


@pytest.fixture(scope="module")
def schema():
    GENERATOR_STATS.reset()
    return SchemaGenerator().get_schema(request=None, public=True)


@pytest.fixture(scope="module")
def operations(schema):
    return {
        f"{method.upper()} {path}": operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    }


def test_it_is_made_without_a_warning(schema):
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache


def test_every_operation_has_a_name_of_its_own(operations):
    named = {label: operation["operationId"] for label, operation in operations.items()}
    assert named == OPERATION_NAMES
    assert len(set(named.values())) == len(named)


def test_its_addresses_are_those_of_the_server_that_has_it(schema):
    assert [each["url"] for each in schema["servers"]] == ["/"]


def test_every_example_belongs_to_an_operation():
    assert EXAMPLES.keys() <= set(OPERATION_NAMES.values())


def test_every_operation_with_a_body_has_an_example(operations):
    with_bodies = {each["operationId"] for each in operations.values() if "requestBody" in each}
    assert with_bodies == EXAMPLES.keys()


@pytest.fixture
def uuids(owner):
    """What the examples name is there. By operation: what its address has."""
    palace = Palace.objects.own(owner)
    wing = WingFactory(palace=palace, uuid=A_WING)
    DrawerFactory(room=RoomFactory(wing=wing), uuid=A_DRAWER)
    DrawerFactory(room=RoomFactory(wing=wing), trashed_at=moment_of(A_BATCH))
    other, moved = (RoomFactory(wing=WingFactory(palace=palace)) for _ in range(2))
    # A wing that loses its last message is gone.
    for room in (other, moved, RoomFactory(wing=wing)):
        DrawerFactory(room=room)
    return {
        "update_wing": lambda: A_WING,
        "merge_wing": lambda: other.wing.uuid,
        "move_room": lambda: moved.uuid,
        "update_webhook": lambda: Webhook.objects.get().uuid,
        "update_memory": lambda: Fact.objects.active().first().memory,
    }


@pytest.mark.django_db(transaction=True)
def test_every_example_can_be_sent(program, operations, uuids):
    labels = {operation["operationId"]: label for label, operation in operations.items()}
    for name, body in EXAMPLES.items():
        method, path = labels[name].split(" ")
        places = {**PLACES, **dict.fromkeys(("uuid", "memory_id"), uuids.get(name, str)())}
        address = re.sub(r"{(\w+)}", lambda found, here=places: str(here[found[1]]), path)
        answer = getattr(program, method.lower())(address, body)
        assert answer.status_code < 300, (name, answer.content)
        [media] = operations[labels[name]]["requestBody"]["content"].values()
        assert [each["value"] for each in media["examples"].values()] == [body]
