"""The answers in the schema are real ones: recorded of a running Loci, and still its answers.

    pytest tests/api/test_answer_examples.py --record-examples

records them, after something was changed in what is answered.
"""

from __future__ import annotations

import json

import httpx2
import jsonschema
import pytest
from django.contrib.auth.models import User
from drf_spectacular.generators import SchemaGenerator

from api.rest.openapi import ANSWERS, METHODS, OPERATION_NAMES
from settings_app.api_keys import issue
from tests.api.played_operations import play_all
from tests.asgi_server import AsgiServer

RECORDED = json.loads(ANSWERS.read_text())


@pytest.fixture(scope="module")
def document():
    return SchemaGenerator().get_schema(request=None, public=True)


@pytest.fixture(scope="module")
def operations(document):
    return {
        operation["operationId"]: operation
        for methods in document["paths"].values()
        for method, operation in methods.items()
        if method in METHODS
    }


def shape(value):
    """Names and types, however many items there are and whatever they say."""
    if isinstance(value, dict):
        return {name: shape(of) for name, of in value.items()}
    if isinstance(value, list):
        return [json.loads(each) for each in sorted({json.dumps(shape(each)) for each in value})]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def test_every_answer_that_has_a_body_has_an_example(operations):
    for name, operation in operations.items():
        well = {status: of for status, of in operation["responses"].items() if status < "300"}
        of_json = [
            status for status, of in well.items() if "application/json" in of.get("content", {})
        ]
        assert bool(of_json) == (name in RECORDED), name
        for status, answer in RECORDED.get(name, {}).items():
            [example] = well[status]["content"]["application/json"]["examples"].values()
            assert example["value"] == answer


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_the_example_is_what_the_schema_says(document, operations, name):
    [(status, answer)] = RECORDED[name].items()
    said = operations[name]["responses"][status]["content"]["application/json"]["schema"]
    whole = {**said, "components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(answer)


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_the_examples_are_what_a_running_loci_answers(settings, pytestconfig):
    settings.API_RATE = ""
    _, key = issue(
        User.objects.create_user("owner"), "a program", scopes=["read", "write", "admin"]
    )
    header = {"Authorization": f"Bearer {key}"}
    with (
        AsgiServer() as server,
        httpx2.Client(base_url=server.url, headers=header, timeout=60) as client,
    ):
        played = play_all(client)
    assert played.called == set(OPERATION_NAMES.values())
    if pytestconfig.getoption("--record-examples"):
        ANSWERS.write_text(json.dumps(played.answers, indent=1, ensure_ascii=False) + "\n")
        return
    assert played.answers.keys() == RECORDED.keys()
    for name, answer in played.answers.items():
        assert shape(answer) == shape(RECORDED[name]), f"{name}: see the top of this module"
