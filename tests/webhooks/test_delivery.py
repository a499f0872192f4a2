from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from bench.stub_servers import DRIP, HANG_UP, REDIRECT
from language.transcripts import Transcript, Turn
from palace import webhooks
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_writer import record_event
from palace.mining.pipeline import mine_at_once
from palace.models import Activity, FactEvent, Palace, Webhook, WebhookDelivery
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.webhooks import add, replace_secret, try_out
from palace.webhooks import delivery as delivering
from palace.webhooks.delivery import PAUSES_S, deliver_due, forget_old
from tests.polling import until
from tests.webhooks.conftest import change_a_fact, make_due

WORDS = "I just moved to Lisbon."


def deliver():
    assert deliver_due(seconds=60)


@pytest.mark.django_db(transaction=True)
def test_a_delivery_has_ids_alone(palace, webhook, receiver):
    said = Turn("1", "user", WORDS, timezone.now())
    mine_at_once(palace, Transcript("api", "session-9", "", (said,)), seconds=60)
    recollection = recall(palace, RecallRequest("Where does the user live?", with_facts=True))
    deliver()
    sent = {each.json["type"]: each.json["data"] for each in receiver.heard}
    assert set(sent) == {"mined", "fact.changed", "recalled"}
    assert all(data["palace"] == str(palace.uuid) for data in sent.values())
    assert sent["mined"]["session_id"] == "session-9"
    assert sent["mined"]["made"]["drawers"] == 1
    change = FactEvent.objects.get(palace=palace, uuid=sent["fact.changed"]["change"])
    assert sent["fact.changed"]["memory"] == str(change.memory)
    assert sent["recalled"]["recollection"] == str(recollection.uuid)
    assert sent["recalled"]["hits"] == len(recollection.hits)
    assert not any(b"Lisbon" in each.body for each in receiver.heard)
    assert {each.state for each in webhook.deliveries.all()} == {"delivered"}


def test_it_is_signed_as_standard_webhooks_has_it(alice, palace, receiver):
    _webhook, secret = add(alice.pk, receiver.url, ["fact.changed"])
    change_a_fact(palace)
    deliver()
    (heard,) = receiver.heard
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{heard.headers['webhook-id']}.{heard.headers['webhook-timestamp']}.".encode()
    digest = hmac.new(key, signed + heard.body, hashlib.sha256).digest()
    assert heard.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert abs(int(heard.headers["webhook-timestamp"]) - time.time()) < 300


def test_after_a_new_secret_the_former_one_signs_for_a_day_too(alice, palace, receiver):
    webhook, former = add(alice.pk, receiver.url, ["fact.changed"])
    change_a_fact(palace)
    # The event waits while the secret is replaced.
    present = replace_secret(webhook)
    deliver()
    Webhook.objects.update(former_until=timezone.now() - timedelta(seconds=1))
    try_out(webhook)
    deliver()
    during, after = receiver.heard
    for heard, secrets in ((during, [present, former]), (after, [present])):
        at = int(heard.headers["webhook-timestamp"])
        name = heard.headers["webhook-id"]
        expected = webhooks.signed_headers(secrets, name, at, heard.body)
        assert heard.headers["webhook-signature"] == expected["webhook-signature"]
    first, second = during.headers["webhook-signature"].split(" ")
    assert first.startswith("v1,")
    assert second.startswith("v1,")
    assert first != second


def test_a_webhook_gets_its_owners_palaces_or_the_one_it_names(alice, bob, receiver):
    add(alice.pk, receiver.url, ["fact.changed"], subject="u1")
    for owner, subject in ((alice, ""), (alice, "u1"), (alice, "u2"), (bob, "u1")):
        change_a_fact(Palace.objects.create(owner=owner, subject=subject))
    deliver()
    assert [each.json["data"]["user_id"] for each in receiver.heard] == ["u1"]
    assert WebhookDelivery.objects.count() == 1


def test_what_was_rolled_back_is_not_delivered(palace, webhook):
    with transaction.atomic():
        change_a_fact(palace)
        transaction.set_rollback(True)
    assert not webhook.deliveries.exists()


def test_what_failed_is_sent_again_under_the_same_id(palace, webhook, receiver):
    receiver.script([500])
    change_a_fact(palace)
    deliver()
    delivery = webhook.deliveries.get()
    assert (delivery.state, delivery.attempts, delivery.status) == ("waiting", 1, 500)
    assert delivery.said == "It answered 500: a word of why"
    webhook.refresh_from_db()
    assert webhook.failing_since
    make_due()
    deliver()
    assert [each.headers["webhook-id"] for each in receiver.heard] == [
        f"msg_{delivery.uuid.hex}"
    ] * 2
    delivery.refresh_from_db()
    webhook.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.due_at) == ("delivered", 2, None)
    assert webhook.failing_since is None


@pytest.mark.parametrize(
    ("reply", "answer_s", "said"),
    [
        (REDIRECT, 60, "It answered 302, a redirect, which is not followed."),
        (HANG_UP, 60, "It cannot be reached: "),
        (DRIP, 0.3, "It did not answer within 0.3 seconds."),
    ],
)
def test_other_ways_to_fail_are_said_and_tried_again(
    palace, webhook, receiver, monkeypatch, reply, answer_s, said
):
    monkeypatch.setattr(webhooks, "ANSWER_S", answer_s)
    receiver.script([reply])
    change_a_fact(palace)
    deliver()
    delivery = webhook.deliveries.get()
    assert delivery.state == "waiting"
    assert delivery.said.startswith(said)
    # On a busy machine the receiver may read it after the sender gave up.
    until(lambda: receiver.heard)
    assert [each.path for each in receiver.heard] == ["/hook"]


def test_where_nobody_answers_the_others_wait_without_being_tried(palace, webhook, receiver):
    receiver.script([HANG_UP])
    change_a_fact(palace)
    change_a_fact(palace)
    deliver()
    assert len(receiver.heard) == 1
    assert [each.attempts for each in webhook.deliveries.order_by("pk")] == [1, 0]
    make_due()
    deliver()
    assert {each.state for each in webhook.deliveries.all()} == {"delivered"}


def test_after_the_last_attempt_it_is_given_up(palace, webhook, receiver):
    receiver.script([500])
    change_a_fact(palace)
    webhook.deliveries.update(attempts=len(PAUSES_S))
    deliver()
    delivery = webhook.deliveries.get()
    assert (delivery.state, delivery.due_at) == ("failed", None)


def test_one_that_has_failed_for_days_is_disabled(palace, webhook, receiver):
    receiver.script([500])
    change_a_fact(palace)
    long_ago = timezone.now() - delivering.DISABLED_AFTER - timedelta(minutes=1)
    Webhook.objects.update(failing_since=long_ago)
    deliver()
    webhook.refresh_from_db()
    assert webhook.disabled_why.endswith("It answered 500: a word of why")
    change_a_fact(palace)
    assert webhook.deliveries.count() == 1


def test_one_that_is_gone_is_disabled(palace, webhook, receiver):
    receiver.script([410])
    change_a_fact(palace)
    deliver()
    webhook.refresh_from_db()
    assert webhook.disabled_at
    assert webhook.deliveries.get().state == "failed"


def test_what_a_killed_worker_took_up_is_sent_by_the_next(palace, webhook, receiver):
    change_a_fact(palace)
    assert delivering._claim()
    deliver()
    assert len(receiver.heard) == 1


def test_what_failed_is_not_taken_for_what_a_killed_worker_left(palace, webhook, receiver):
    receiver.script([500])
    change_a_fact(palace)
    deliver()
    deliver()
    assert len(receiver.heard) == 1


def test_what_grows_while_it_waits_is_delivered_once(palace, webhook, receiver):
    run = Activity(palace=palace, kind=Activity.Kind.MEMORY_MINED, summary="One.")
    for drawers in (8, 16):
        run.detail = {"room": str(uuid4()), "made": {"drawers": drawers}}
        run.save()
    run.summary = "Renamed."
    run.save()
    deliver()
    assert [each.json["data"]["made"] for each in receiver.heard] == [{"drawers": 16}]


def test_a_closed_network_gets_no_deliveries(palace, webhook, receiver, settings):
    settings.PRIVATE_PROVIDERS = False
    change_a_fact(palace)
    deliver()
    assert not receiver.heard
    assert "must use https" in webhook.deliveries.get().said
    Webhook.objects.update(url=receiver.url.replace("http:", "https:"))
    make_due()
    deliver()
    assert "within this server's own network" in webhook.deliveries.get().said


def test_a_recall_asks_the_database_as_often_as_without(palace, webhook):
    recall(palace, RecallRequest("Lisbon"))
    asked = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            recall(palace, RecallRequest("Lisbon"))
        asked.append(len(queries))
        Webhook.objects.all().delete()
    assert asked[0] == asked[1]


def test_deliveries_go_with_their_palace_and_with_time(alice, palace, webhook):
    change_a_fact(palace)
    record_event(palace, Scope("api"), FactEvent.Kind.DELETE, uuid4(), WORDS, None)
    try_out(webhook)
    webhook.deliveries.filter(data__event="ADD").update(
        created_at=timezone.now() - delivering.KEPT_FOR
    )
    assert forget_old() == 1
    palace.delete()
    assert [each.event for each in webhook.deliveries.all()] == ["test"]
