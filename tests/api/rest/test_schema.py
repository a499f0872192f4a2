"""The schema is true: what is answered is in it, whatever is sent, and never a 5xx."""

from __future__ import annotations

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.openai.schema import TAG
from palace.models import Palace
from settings_app.api_keys import issue
from tests.hypothesis_profiles import is_thorough

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
DOCUMENT = SchemaGenerator().get_schema(request=None, public=True)
# The proxy's addresses have a test of their own, at a server: they close the connection.
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT).exclude(tag=TAG)
SCHEMA.app = get_wsgi_application()
OPERATIONS = {
    operation.label: operation for operation in (one.ok() for one in SCHEMA.get_all_operations())
}

# Each request is a real one: few of each kind, always the same ones.
few = hypothesis_settings(
    max_examples=8 if is_thorough() else 2,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def _one_connection():
    """As Django's own test client does: requests are answered within the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def header(owner, settings):
    settings.API_RATE = ""
    Palace.objects.own(owner)
    _, text = issue(owner, "a program", scopes=["read", "write", "admin"])
    return {"Authorization": f"Bearer {text}"}


def test_the_schema_is_valid():
    SCHEMA.validate()
    assert OPERATIONS


@pytest.mark.some(34)
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_what_is_answered_is_in_the_schema(header, label, mode):
    strategy = OPERATIONS[label].as_strategy(generation_mode=GenerationMode(mode))

    @few
    @given(case=strategy)
    def send(case):
        case.call_and_validate(headers=header, checks=CHECKS)

    send()
