"""The schema names each operation once, and its examples are requests that work."""

from __future__ import annotations

import re

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from api.rest.openapi import EXAMPLES, METHODS, OPERATION_NAMES

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


@pytest.mark.django_db(transaction=True)
def test_every_example_can_be_sent(program, operations):
    labels = {operation["operationId"]: label for label, operation in operations.items()}
    for name, body in EXAMPLES.items():
        method, path = labels[name].split(" ")
        address = re.sub(r"{(\w+)}", lambda found: PLACES[found[1]], path)
        answer = getattr(program, method.lower())(address, body)
        assert answer.status_code < 300, (name, answer.content)
        [media] = operations[labels[name]]["requestBody"]["content"].values()
        assert [each["value"] for each in media["examples"].values()] == [body]
