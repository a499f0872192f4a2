"""The schema says what the proxy takes and answers, whatever is sent to it, and never a 5xx."""

from __future__ import annotations

import openai
import pytest
import schemathesis
from django.urls import URLResolver
from hypothesis import given
from schemathesis import GenerationMode

from api.openai.schema import TAG
from api.urls import urlpatterns
from tests.api.openai.conftest import ask
from tests.api.rest.test_schema import CHECKS, DOCUMENT, few

SCHEMA = schemathesis.openapi.from_dict(DOCUMENT).include(tag=TAG)
OPERATIONS = {one.ok().label: one.ok() for one in SCHEMA.get_all_operations()}


def test_every_address_of_the_proxy_is_in_it():
    doors = [each for each in urlpatterns if isinstance(each, URLResolver)]
    [patterns] = [door.url_patterns for door in doors if door.namespace == "proxy"]
    addresses = {f"/v1/{each.pattern}".replace("<path:name>", "{name}") for each in patterns}
    assert addresses == {label.split()[1] for label in OPERATIONS}


@pytest.mark.some(4)
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_what_is_answered_is_in_the_schema(program, server, settings, label, mode):
    settings.API_RATE = ""
    header = {"Authorization": f"Bearer {program.api_key}"}
    strategy = OPERATIONS[label].as_strategy(generation_mode=GenerationMode(mode))

    @few
    @given(case=strategy)
    def send(case):
        case.call_and_validate(base_url=server.url, headers=header, checks=CHECKS)

    send()


def test_errors_have_the_documented_shape(program, server):
    shape = DOCUMENT["components"]["schemas"]["OpenAIError"]["properties"]["error"]
    with pytest.raises(openai.BadRequestError) as refused:
        ask(program, "Hi.", tools=[{"type": "function", "function": {"name": "f"}}])
    assert refused.value.code == "model_required"
    assert set(refused.value.body) == set(shape["properties"])
