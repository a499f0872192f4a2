"""The end of an account: all of it goes, nothing of others does, and a receipt says how much."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from chat import live_reply
from chat.models import Agent, Conversation, Message
from llm import usage
from llm.models import Usage
from palace.curation.deletion import delete_closed_accounts
from palace.knowledge.facts import fact_extraction
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import ImportJob, Palace
from palace.models.concurrency import due_in
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.transfer.spools import new_spool
from palace.views import account
from palace.working import put_fields
from palace.working.entries import set_entry
from palace.working.redis_keys import Namespace
from settings_app.accounts import LinkRefused, Receipt, one_time_link, redeem, rows_of
from settings_app.api_keys import issue, key_of
from settings_app.models import MemorySettings
from settings_app.secrets import seal
from settings_app.task_queue import BULK, QUEUE
from tests.conversations import SOURDOUGH, transcript
from tests.curation.test_deletion import refused
from tests.curation.test_purge import words_in_the_database
from tests.settings_app.conftest import sign_in, signed_in_as

PAGE = "/settings/account/delete/"
WORDS = ("alice", "sourdough", "vinegar", "walnut", "loaves", "marzipan", "anna")


def in_redis():
    """Each key with all that is in it, as bytes."""
    client = redis.Redis.from_url(settings.REDIS_URL)
    with client:
        return {key: client.dump(key) or b"" for key in client.scan_iter()}


def on_disk():
    return set(Path(settings.LOCI_HOME, "imports").glob("*"))


def program_of(owner):
    """A client with a key of the owner's, and the key as it is written."""
    _, text = issue(owner, f"of {owner.username}")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client, text


def lived(owner):
    """Something of an owner's in each table, Redis key and folder that can hold it."""
    palace = Palace.objects.own(owner)
    mine(palace, SOURDOUGH)
    learn_unread(palace)
    recall(palace, RecallRequest("Why do the loaves come out flat?", with_facts=True))
    assert due_in(BULK, "facts")(palace.pk)
    MemorySettings.objects.create(owner=owner, sealed_key=seal("marzipan"))
    program, _ = program_of(owner)
    answer = {"session_id": "one", "messages": [{"role": "user", "content": "Marzipan again."}]}
    again = {"HTTP_IDEMPOTENCY_KEY": "once"}
    assert program.post("/turns", {**answer, "user_id": "anna"}, **again).status_code == 201
    a_year_ago = timezone.now() - timedelta(days=366)
    usage.keep(usage.Meter(), purpose="chat", provider="p", model="m", owner_id=owner.pk)
    Usage.objects.filter(owner=owner).update(created_at=a_year_ago)
    assert usage.by_month(owner.pk, a_year_ago.year)
    put_fields(palace, "talk", {"note": "Marzipan."})
    session = Namespace.read("session/one")
    set_entry(palace, session, "key", "Marzipan.")
    cache.set(f"{fact_extraction._prefix(owner.pk)}digest", "Marzipan.", 3600)
    Path(new_spool()).write_text("Marzipan.")
    spool = max(on_disk(), key=lambda path: path.stat().st_mtime_ns)
    ImportJob.objects.create(palace=palace, file_name="marzipan.json", spool=spool.name)
    replying(palace)
    kind = ContentType.objects.get_for_model(User)
    about = {"content_type": kind, "object_id": owner.pk, "object_repr": owner.username}
    LogEntry.objects.create(user=User.objects.get(username="root"), action_flag=2, **about)
    return palace


def replying(palace):
    agent = Agent.objects.create(palace=palace, name="Marzipan agent")
    talk = Conversation.objects.create(
        palace=palace, agent=agent, title="Marzipan", spoke_at=timezone.now()
    )
    said = {"palace": palace, "conversation": talk, "said_at": timezone.now()}
    Message.objects.create(**said, position=0, role="user", text="Marzipan?")
    reply = Message.objects.create(**said, position=1, role="assistant", text="Marzipan.")
    live_reply.publish_text(reply.uuid, "Marzipan.", 0)


@pytest.fixture
def root(db):
    return User.objects.create_superuser("root", password="root-password")


@pytest.mark.django_db(transaction=True)
def test_nothing_of_a_deleted_account_is_left_anywhere(client, alice, bob, root):
    keys, files = set(in_redis()), on_disk()
    mine(Palace.objects.own(bob), transcript("I prefer tea.", "Noted."))
    program, others_key = program_of(bob)
    program.get("/users/anyone/memories")
    lived(alice)
    sign_in(client, "alice", "alice-password")
    bobs = rows_of([bob])
    held = rows_of([alice])
    assert [word for word in WORDS if word not in words_in_the_database()] == []
    new = {key: content for key, content in in_redis().items() if key not in keys}
    assert any(b"Marzipan" in content for content in new.values())
    assert [key for key in new if b"usage:" in key]
    assert len(on_disk()) == len(files) + 1

    response = client.post(PAGE, {"password": "alice-password"}, follow=True)

    assert signed_in_as(client) is None
    assert "Your account is deleted" in response.text
    answer = client.get(response.request["PATH_INFO"] + "?format=json").json()
    assert answer["finished"]
    assert answer["rows"] == held
    left = words_in_the_database()
    assert [word for word in WORDS if word in left] == []
    assert rows_of([bob]) == bobs
    assert on_disk() == files
    others = str(key_of(others_key).uuid).encode()
    still = {key: content for key, content in in_redis().items() if key not in keys}
    others_or_queues = (others, b"celery", QUEUE.encode(), BULK.encode())
    assert [key for key in still if not any(name in key for name in others_or_queues)] == []


@pytest.mark.django_db(transaction=True)
def test_a_closed_account_opens_by_no_way_and_its_name_is_free(client, alice):
    program, text = program_of(alice)
    link = one_time_link(alice)
    with refused("auth_user"):
        sign_in(client, "alice", "alice-password")
        elsewhere = client.__class__()
        elsewhere.force_login(alice)
        page = client.post(PAGE, {"password": "alice-password"}, follow=True)
        assert "Your account is closed" in page.text
        receipt = page.request["PATH_INFO"]
        assert not client.get(f"{receipt}?format=json").json()["finished"]
        assert key_of(text) is None
        assert program.get("/users/anna/memories").status_code == 401
        assert elsewhere.get(reverse("chat")).status_code == 302
        with pytest.raises(LinkRefused):
            redeem(link.rstrip("/").rsplit("/", 1)[1])
        sign_in(client, "alice", "alice-password")
        assert signed_in_as(client) is None
        again = User.objects.create_user("alice", password="another one")
        delete_closed_accounts()  # It fails once more, and says so in the log.
    delete_closed_accounts()
    assert client.get(f"{receipt}?format=json").json()["finished"]
    assert list(User.objects.values_list("pk", flat=True)) == [again.pk]


@pytest.mark.django_db(transaction=True)
def test_what_was_broken_off_between_palaces_goes_on(client, alice):
    first = Palace.objects.own(alice)
    second = Palace.objects.create(owner=alice, subject="anna")
    mine(second, SOURDOUGH)
    client.force_login(alice)
    with refused("palace_room"):
        client.post(PAGE, {"password": "alice-password"})
    assert list(Palace.objects.values_list("pk", flat=True)) == [second.pk] != [first.pk]
    delete_closed_accounts()
    assert not User.objects.exists()
    assert "sourdough" not in words_in_the_database()


@pytest.mark.django_db(transaction=True)
def test_much_is_left_to_the_worker(client, alice, palace, queued, monkeypatch):
    monkeypatch.setattr(account, "AT_ONCE", 3)
    mine(palace, SOURDOUGH)
    client.force_login(alice)
    page = client.post(PAGE, {"password": "alice-password"}, follow=True)
    assert "it is being deleted right now" in page.text
    assert queued() == ["delete_closed_accounts"]
    delete_closed_accounts()
    assert "Your account is deleted" in client.get(page.request["PATH_INFO"]).text


def test_a_wrong_password_deletes_nothing_and_may_not_be_guessed(alices, alice):
    assert "This is not your password." in alices.post(PAGE, {"password": "wrong"}).text
    for _ in range(9):
        assert alices.post(PAGE, {"name": "alice", "password": "wrong"}).status_code == 400
    assert alices.post(PAGE, {"password": "alice-password"}).status_code == 429
    alice.refresh_from_db()
    assert alice.is_active


def test_who_has_no_password_types_the_name(alices, alice):
    alice.set_unusable_password()
    alice.save()
    alices.force_login(alice)
    page = alices.get(PAGE).text
    assert "Your name, to confirm" in page
    assert "Your password" not in page
    wrong = alices.post(PAGE, {"name": "bob"})
    assert wrong.status_code == 400
    assert "This is not your name." in wrong.text
    alices.post(PAGE, {"name": "alice"})
    assert not User.objects.filter(pk=alice.pk).exists()


def test_a_receipt_that_is_not_ours_is_not_found(client, db):
    good = Receipt(7, timezone.now(), {"drawers": 3}).sealed()
    assert client.get(reverse("account_deleted", args=[good])).status_code == 200
    for bad in (good[:-3], "receipt", seal("7"), seal(json.dumps([1, 2]))):
        assert client.get(reverse("account_deleted", args=[bad])).status_code == 404
