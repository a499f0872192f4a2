from __future__ import annotations

import pytest

from palace.models import IdempotentWrite, Webhook
from palace.webhooks import MOST, add
from palace.webhooks.delivery import deliver_due
from settings_app.secrets import unseal
from tests.api.rest.conftest import client_of

ASKED = {"url": "https://example.org/hook", "events": ["recalled", "mined"], "user_id": "u1"}


@pytest.fixture
def program(alice):
    return client_of(alice)


def test_its_life_over_rest(program, receiver, queued):
    made = program.post("/v1/webhooks/", {**ASKED, "url": receiver.url})
    assert made.status_code == 201, made.content
    assert made.json()["secret"].startswith("whsec_")
    address = f"/v1/webhooks/{made.json()['id']}/"
    shown = program.get(address).json()
    assert "secret" not in shown
    assert (shown["events"], shown["user_id"]) == (["mined", "recalled"], "u1")
    assert program.get("/v1/webhooks/").json() == {"webhooks": [shown]}
    assert program.post(f"{address}test/").status_code == 202
    assert queued() == ["deliver_webhooks"]
    deliver_due(seconds=60)
    (delivery,) = program.get(f"{address}deliveries/").json()["deliveries"]
    assert delivery["state"] == "delivered"
    assert receiver.heard[0].headers["webhook-id"] == delivery["id"]
    stopped = program.patch(address, {"enabled": False, "events": ["fact.changed"]}).json()
    assert (stopped["enabled"], stopped["events"]) == (False, ["fact.changed"])
    assert program.post(f"{address}test/").status_code == 400
    assert program.patch(address, {"enabled": True}).json()["enabled"]
    assert program.delete(address).status_code == 204
    assert program.get(address).status_code == 404


def test_its_secret_is_kept_nowhere_as_it_is(program):
    sent = {"headers": {"Idempotency-Key": "once"}}
    made = program.post("/v1/webhooks/", ASKED, **sent).json()
    again = program.post("/v1/webhooks/", ASKED, **sent).json()
    assert again == {name: value for name, value in made.items() if name != "secret"}
    webhook = Webhook.objects.get()
    assert made["secret"] not in webhook.sealed_secret
    assert unseal(webhook.sealed_secret) == made["secret"]
    assert "secret" not in IdempotentWrite.objects.get().body


def test_its_secret_is_replaced_and_shown_once(program, bob):
    made = program.post("/v1/webhooks/", ASKED).json()
    address = f"/v1/webhooks/{made['id']}/"
    assert made["former_secret_until"] is None
    sent = {"headers": {"Idempotency-Key": "again"}}
    replaced = program.post(f"{address}secret/", **sent)
    assert replaced.status_code == 201
    webhook = Webhook.objects.get()
    assert unseal(webhook.sealed_secret) == replaced.json()["secret"] != made["secret"]
    assert unseal(webhook.former_sealed_secret) == made["secret"]
    assert program.get(address).json()["former_secret_until"]
    assert "secret" not in program.post(f"{address}secret/", **sent).json()
    assert client_of(bob).post(f"{address}secret/").status_code == 404
    writes = client_of(webhook.owner, scopes=("read", "write"))
    assert writes.post(f"{address}secret/").status_code == 403


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "ftp://example.org/"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://example.org:port/"}, "url"),
        ({"url": "https://me:secret@example.org/"}, "url"),
        ({"url": "https://example.org/ a"}, "url"),
        ({"url": "http://example.org/"}, "https://"),
        ({"url": "https://127.0.0.1/"}, "network"),
        ({"url": "https://[::1]:5432/"}, "network"),
        ({"url": "https://0x7f000001/"}, "network"),
        ({"events": []}, "events"),
        ({"events": ["forgotten"]}, "events"),
        ({"user_id": " "}, "user_id"),
    ],
    ids=str,
)
def test_a_webhook_that_cannot_work_is_refused_with_a_message(program, settings, changed, said):
    settings.PRIVATE_PROVIDERS = False
    answer = program.post("/v1/webhooks/", {**ASKED, **changed})
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    assert not Webhook.objects.exists()


def test_without_tls_only_numbers_of_ones_own_network_get_deliveries(program):
    assert program.post("/v1/webhooks/", {**ASKED, "url": "http://8.8.8.8/"}).status_code == 400
    assert program.post("/v1/webhooks/", {**ASKED, "url": "http://10.0.0.8/"}).status_code == 201


def test_a_key_for_one_palace_hears_of_no_other(alice, program):
    program.post("/v1/webhooks/", ASKED)
    others = client_of(alice, subject="u2")
    assert others.get("/v1/webhooks/").json() == {"webhooks": []}
    assert others.post("/v1/webhooks/", ASKED).status_code == 403
    made = others.post("/v1/webhooks/", {**ASKED, "user_id": None}).json()
    assert made["user_id"] == "u2"


def test_it_takes_a_key_that_may_administer(alice):
    assert client_of(alice, scopes=("read", "write")).get("/v1/webhooks/").status_code == 403


def test_there_are_not_too_many(alice, program):
    for _ in range(MOST):
        add(alice.pk, ASKED["url"], ASKED["events"])
    assert "Delete one" in program.post("/v1/webhooks/", ASKED).json()["detail"]
