from __future__ import annotations

import pytest
import redis
from django.core.cache import caches
from django.db import connections
from django.urls import reverse

from settings_app.api_keys import issue
from settings_app.throttling import count_request


def test_a_house_that_stands_says_ok_to_anyone(client, db):
    response = client.get("/health")
    assert response.status_code == 200
    parts = ("status", "database", "redis", "embedder", "disk")
    assert response.json() == dict.fromkeys(parts, "ok")


def test_without_redis_the_pages_still_answer(client, db, settings, tmp_path):
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"unix://{tmp_path}/nobody.sock",
        }
    }
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["redis"] == "away"
    assert caches["default"]


def test_an_embedder_that_is_not_built_is_reported(client, db, settings, tmp_path):
    settings.MODELS_DIR = tmp_path
    assert client.get("/health").json()["embedder"] == "away"


@pytest.fixture
def no_database(settings, tmp_path):
    connection = connections["default"]
    connection.close()
    host = connection.settings_dict["HOST"]
    connection.settings_dict["HOST"] = str(tmp_path)
    yield
    connection.close()
    connection.settings_dict["HOST"] = host


def test_without_a_database_the_answer_is_503_and_no_traceback(
    client, django_db_blocker, no_database
):
    with django_db_blocker.unblock():
        response = client.get("/health")
    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert response.json()["database"] == "away"


def test_a_remote_embedder_is_named_and_not_called(client, db, settings):
    settings.EMBEDDING_PROVIDER = "http://127.0.0.1:9/v1"  # Nobody listens there.
    response = client.get("/health")
    assert response.json()["embedder"] == "remote"
    assert response.json()["status"] == "ok"


def test_a_database_that_cannot_write_is_full(client, db):
    with connections["default"].cursor() as cursor:
        cursor.execute("SET temp_file_limit = '64kB'")
        try:
            response = client.get("/health")
        finally:
            cursor.execute("RESET temp_file_limit")
    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["database"] == "full"


@pytest.fixture
def full_redis(settings):
    """A Redis that answers, and has no memory left to write."""
    with redis.Redis.from_url(settings.REDIS_URL) as store:
        before = store.config_get("maxmemory")["maxmemory"]
        store.config_set("maxmemory", 1)
        yield store
        store.config_set("maxmemory", before)


def test_a_redis_that_cannot_write_is_full(client, db, full_redis):
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["redis"] == "full"


def test_with_a_full_redis_no_password_is_tried(client, alice, full_redis):
    client.raise_request_exception = False
    page = client.post(reverse("sign_in"), {"username": "alice", "password": "alice-password"})
    assert page.status_code == 503
    assert "The short-term store (Redis) is down or full." in page.text
    assert "_auth_user_id" not in client.session


def test_with_a_full_redis_each_process_counts_requests(alice, settings, full_redis):
    settings.API_RATE = "1/day"
    key, _ = issue(alice, "a program")
    assert count_request(key).allowed
    assert not count_request(key).allowed
