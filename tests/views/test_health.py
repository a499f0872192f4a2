from __future__ import annotations

import pytest
from django.core.cache import caches
from django.db import connections


def test_a_house_that_stands_says_ok_to_anyone(client, db):
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "database": "ok", "redis": "ok", "embedder": "ok"}


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
