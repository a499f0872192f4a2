from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from bench.stub_servers import Receiver
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import record_event
from palace.models import FactEvent, WebhookDelivery
from palace.webhooks import add

EVERYTHING = ("mined", "fact.changed", "recalled")


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def webhook(alice, receiver):
    webhook, _secret = add(alice.pk, receiver.url, EVERYTHING)
    return webhook


def change_a_fact(palace, text="User lives in Lisbon"):
    """Its line of history, which is what the event is about."""
    memory = palace.uuid
    record_event(palace, Scope("api"), FactEvent.Kind.ADD, memory, None, text)


def make_due():
    """As if the pause were over."""
    WebhookDelivery.objects.exclude(due_at=None).update(
        due_at=timezone.now() - timedelta(seconds=1)
    )
