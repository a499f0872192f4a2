"""With a palace its working memory goes; and what befalls it when Redis does."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

import pytest
import redis
from django.urls import reverse

from config import embedded
from config.tasks import forget_deleted_palaces
from language.errors import WorkingMemoryAway
from palace import working
from palace.models import Palace
from palace.working import delete_fields, get_fields, list_conversations, put_fields
from palace.working.entries import (
    delete_entry,
    entries_under,
    get_entry,
    inventory,
    namespaces,
    search_entries,
    set_entry,
)
from tests.polling import until


def fill(palace, session):
    set_entry(palace, session, "a", "x", ttl_seconds=86400)
    put_fields(palace, "talk", {"note": "y"})


def names_of(client, palace_uuid):
    return sorted(client.scan_iter(f"{palace_uuid}:*"))


def test_every_key_begins_with_its_palace(palace, session, redis_client):
    before = set(redis_client.scan_iter())
    fill(palace, session)
    new = set(redis_client.scan_iter()) - before
    assert len(new) == 5
    assert all(name.startswith(f"{palace.uuid}:") for name in new)


@pytest.mark.parametrize("way", ["palace", "account", "admin"])
def test_deleting_a_palace_by_whatever_way_deletes_its_keys(
    palace, other, session, redis_client, admin_client, way, django_capture_on_commit_callbacks
):
    for each in (palace, other):
        fill(each, session)
    with django_capture_on_commit_callbacks(execute=True):
        if way == "palace":
            palace.delete()
        elif way == "account":
            palace.owner.delete()
        else:
            address = reverse("admin:auth_user_delete", args=[palace.owner_id])
            assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert not Palace.objects.filter(uuid=palace.uuid).exists()
    assert names_of(redis_client, palace.uuid) == []
    assert get_fields(other, "talk") == {"note": "y"}


def test_a_deletion_that_is_taken_back_deletes_no_key(palace, session, redis_client):
    fill(palace, session)
    palace.delete()  # Within the test's own transaction, which never commits.
    assert len(names_of(redis_client, palace.uuid)) == 5


def test_what_is_left_of_deleted_palaces_goes_by_the_daily_task(palace, session, redis_client):
    fill(palace, session)
    gone = uuid.uuid4()
    redis_client.set(f"{gone}:entries:session/x", "left")
    redis_client.set("celery-something:else", "not ours", ex=60)
    redis_client.set(f"{'x' * 8}-xxxx-xxxx-xxxx-{'x' * 12}:y", "not ours", ex=60)
    forget_deleted_palaces()
    assert names_of(redis_client, gone) == []
    assert len(names_of(redis_client, palace.uuid)) == 5
    assert redis_client.get("celery-something:else") == "not ours"
    assert redis_client.get(f"{'x' * 8}-xxxx-xxxx-xxxx-{'x' * 12}:y") == "not ours"


def test_without_redis_each_call_says_so_and_with_it_they_go_on(palace, session, own_redis):
    fill(palace, session)
    own_redis.kill()
    calls = [
        lambda: set_entry(palace, session, "a", "x"),
        lambda: get_entry(palace, session, "a"),
        lambda: delete_entry(palace, session, "a"),
        lambda: entries_under(palace),
        lambda: namespaces(palace),
        lambda: search_entries(palace, query="x"),
        lambda: inventory(palace, session),
        lambda: put_fields(palace, "talk", {"a": 1}),
        lambda: get_fields(palace, "talk"),
        lambda: delete_fields(palace, "talk"),
        lambda: list_conversations(palace, limit=3),
    ]
    for call in calls:
        with pytest.raises(WorkingMemoryAway, match="Working memory is unavailable"):
            call()
    own_redis.start()
    fill(palace, session)
    assert get_entry(palace, session, "a").value == "x"
    assert get_fields(palace, "talk") == {"note": "y"}


def test_a_palace_is_deleted_without_redis_too(
    palace, session, own_redis, django_capture_on_commit_callbacks
):
    own_redis.kill()
    with django_capture_on_commit_callbacks(execute=True):
        palace.delete()
    assert not Palace.objects.filter(uuid=palace.uuid).exists()


def test_a_redis_that_is_full_is_away(palace, session, own_redis):
    with redis.Redis.from_url(own_redis.url) as client:
        client.config_set("maxmemory", "1")
        for put in (
            lambda: set_entry(palace, session, "a", "x"),
            lambda: put_fields(palace, "talk", {"a": 1}),
        ):
            with pytest.raises(WorkingMemoryAway):
                put()
        client.config_set("maxmemory", "0")
    assert get_entry(palace, session, "a") is None
    assert get_fields(palace, "talk") == {}


@pytest.fixture
def embedded_redis(settings):
    """The embedded Redis, started as it is in earnest; a way to stop and start it."""
    home = Path(tempfile.mkdtemp(prefix="loci-"))
    layout = embedded.Layout(home)
    layout.create()
    embedded._start_redis(layout)
    usual, settings.REDIS_URL = settings.REDIS_URL, layout.redis_url
    yield layout
    settings.REDIS_URL = usual
    layout.redis.stop()
    shutil.rmtree(home)


def test_a_redis_that_is_stopped_and_started_has_kept_it_all(palace, session, embedded_redis):
    fill(palace, session)
    set_entry(palace, session, "short", "x", ttl_seconds=0.05)
    put_fields(palace, "held", {"change": "to be allowed"}, ttl_seconds=7 * 86400)
    before = working.list_conversations(palace, limit=5), entries_under(palace, "session/abc/a")
    embedded_redis.redis.stop()
    with pytest.raises(WorkingMemoryAway):
        get_fields(palace, "talk")
    embedded._start_redis(embedded_redis)
    until(lambda: get_entry(palace, session, "short") is None)
    assert (working.list_conversations(palace, limit=5), entries_under(palace)) == before
    assert get_fields(palace, "held") == {"change": "to be allowed"}
