from __future__ import annotations

import pytest
from django.urls import reverse

from bench.stub_servers import HANG_UP
from palace.models import Webhook
from palace.webhooks.delivery import deliver_due
from settings_app.secrets import unseal
from tests.webhooks.conftest import change_a_fact

FORM = {"events": ["mined", "fact.changed"], "palaces": "own"}


@pytest.fixture
def alices(client, alice):
    client.force_login(alice)
    return client


def test_it_is_added_tried_stopped_and_deleted(alices, receiver, queued):
    made = alices.post(reverse("webhooks"), {**FORM, "url": receiver.url})
    webhook = Webhook.objects.get()
    assert webhook.subject == ""
    assert unseal(webhook.sealed_secret) in made.text
    assert "no-store" in made["Cache-Control"]
    page = reverse("webhook_detail", args=[webhook.uuid])
    assert receiver.url in alices.get(reverse("webhooks")).text
    alices.post(reverse("webhook_try", args=[webhook.uuid]))
    assert queued() == ["deliver_webhooks"]
    assert "on its way" in alices.get(page).text
    deliver_due(seconds=60)
    assert "It answered 204." in alices.get(page).text
    switch = reverse("webhook_switch", args=[webhook.uuid])
    alices.post(switch, {"enabled": "0"})
    assert "You stopped it." in alices.get(page).text
    alices.post(switch, {"enabled": "1"})
    assert "Stopped" not in alices.get(page).text
    delete = reverse("webhook_delete", args=[webhook.uuid])
    assert alices.get(delete).status_code == 200
    alices.post(delete)
    assert not Webhook.objects.exists()


def test_its_secret_is_replaced(alices, webhook, bob):
    former = unseal(webhook.sealed_secret)
    page = reverse("webhook_detail", args=[webhook.uuid])
    assert "the former one also signs for a day" in alices.get(page).text
    replaced = alices.post(reverse("webhook_secret", args=[webhook.uuid]))
    webhook.refresh_from_db()
    assert unseal(webhook.sealed_secret) in replaced.text
    assert former not in replaced.text
    assert "no-store" in replaced["Cache-Control"]
    assert "The former secret also signs until" in alices.get(page).text
    alices.force_login(bob)
    assert alices.post(reverse("webhook_secret", args=[webhook.uuid])).status_code == 404


def test_what_fails_is_said(alices, palace, webhook, receiver):
    receiver.script([HANG_UP])
    change_a_fact(palace)
    deliver_due(seconds=60)
    page = alices.get(reverse("webhook_detail", args=[webhook.uuid])).text
    assert "Nothing has arrived since" in page
    assert "It cannot be reached" in page


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "not an address"}, "without blanks"),
        ({"url": "https://127.0.0.1/"}, "within this server"),
        ({"events": []}, "Choose at least one"),
        ({"palaces": "one"}, "its user_id"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_beside_the_field(alices, settings, changed, said):
    settings.PRIVATE_PROVIDERS = False
    answer = alices.post(reverse("webhooks"), {**FORM, "url": "https://example.org", **changed})
    assert answer.status_code == 400
    assert said in answer.text
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    "name", ["webhook_detail", "webhook_try", "webhook_switch", "webhook_delete"]
)
def test_a_strangers_webhook_is_not_found(client, bob, webhook, name):
    client.force_login(bob)
    address = reverse(name, args=[webhook.uuid])
    assert client.post(address).status_code == (405 if name == "webhook_detail" else 404)
    if name in ("webhook_detail", "webhook_delete"):
        assert client.get(address).status_code == 404
    webhook.refresh_from_db()
    assert webhook.disabled_at is None
    assert webhook.url not in client.get(reverse("webhooks")).text
