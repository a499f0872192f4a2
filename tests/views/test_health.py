from __future__ import annotations

import json
import socket
import time

import httpx
import pytest
import redis
from celery import signals
from django.core.cache import cache, caches
from django.db import connections
from django.test import Client
from django.urls import reverse

from config.celery import app
from palace.models.operations import forget_answered_writes
from settings_app import task_queue
from settings_app.api_keys import issue
from settings_app.sessions import SessionStore
from settings_app.throttling import count_request
from tests.asgi_server import AsgiServer

# Those that report that they run.
PROCESSES = ("worker", "long_worker", "clock")


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


@pytest.fixture
def stopped_database(settings, tmp_path):
    """A server whose processes are stopped: it takes connections, and says nothing."""
    connection = connections["default"]
    connection.close()
    address = {name: connection.settings_dict[name] for name in ("HOST", "PORT")}
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{tmp_path}/.s.PGSQL.5432")
        silent.listen()
        connection.settings_dict |= {"HOST": str(tmp_path), "PORT": "5432"}
        yield
        connection.close()
        connection.settings_dict |= address


@pytest.mark.some(1)
@pytest.mark.parametrize("address", ["/health", "/health/ready", "/metrics"])
def test_a_database_that_neither_answers_nor_refuses_is_away(
    client, settings, django_db_blocker, stopped_database, address
):
    settings.METRICS_TOKEN = "a-token-of-metrics"
    with django_db_blocker.unblock():
        response = client.get(address, headers={"Authorization": "Bearer a-token-of-metrics"})
    if address == "/metrics":
        assert 'loci_away{service="database"} 1.0' in response.text
    else:
        assert response.status_code == 503
        assert response.json()["status"] == "unavailable"


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


def test_a_database_that_only_reads_is_full(client, db):
    with connections["default"].cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    answer = client.get("/health").json()
    assert (answer["status"], answer["database"]) == ("degraded", "full")


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


@pytest.fixture
def qdrant_is_away(settings):
    """The port is taken by somebody who does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings.VECTOR_STORE = "qdrant"
        settings.VECTOR_STORE_URL = f"http://127.0.0.1:{taken.getsockname()[1]}"
        yield


def test_a_vector_store_that_is_away_is_named(client, db, reports, qdrant_is_away, settings):
    answer = client.get("/health/ready")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["parts"]["vector_store"] == "away"
    assert "by their words" in answer.json()["reasons"]["vector_store"]
    assert settings.VECTOR_STORE_URL not in answer.text


def test_a_vector_store_that_answers_is_well(client, db, reports, settings, tmp_path):
    settings.VECTOR_STORE, settings.VECTOR_STORE_URL = "faiss", str(tmp_path / "vectors")
    answer = client.get("/health/ready").json()
    assert (answer["status"], answer["parts"]["vector_store"]) == ("ok", "ok")
    (tmp_path / "vectors").rename(tmp_path / "elsewhere")
    assert client.get("/health/ready").json()["parts"]["vector_store"] == "away"


def test_alive_is_whatever_answers(client, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        assert client.get("/health/live").json() == {"status": "ok"}


def test_nobody_is_looked_up_who_asks_whether_it_is_alive(transactional_db, alice, monkeypatch):
    """A browser sends its session, which a database that is away would have to be asked for."""
    browser = Client()
    browser.force_login(alice)
    monkeypatch.setattr(SessionStore, "load", lambda _session: pytest.fail("It was looked up."))
    cookie = f"sessionid={browser.cookies['sessionid'].value}"
    with AsgiServer() as server:
        for address in ("/health/live", "/health", "/health/ready"):
            answer = httpx.get(f"{server.url}{address}", headers={"Cookie": cookie})
            assert answer.status_code == 200
            assert "set-cookie" not in answer.headers


@pytest.fixture
def reports(settings):
    """Worker and clock as they last reported; nothing in the queue."""
    queue = redis.Redis.from_url(settings.REDIS_URL)
    queue.delete("celery", "bulk")
    task_queue._noted.clear()
    for name in PROCESSES:
        task_queue.note_running(name)
    yield queue
    queue.delete("celery")
    queue.close()
    cache.delete_many([f"background:{name}" for name in PROCESSES])


def test_with_worker_and_clock_it_is_ready(client, db, reports):
    answer = client.get("/health/ready").json()
    parts = ("database", "redis", "embedder", "disk", *PROCESSES, "queue")
    assert answer == {"status": "ok", "parts": dict.fromkeys(parts, "ok"), "reasons": {}}


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_that_is_silent_is_named(client, db, reports, name):
    cache.set(f"background:{name}", time.time() - task_queue.SILENT_AFTER_S - 5)
    answer = client.get("/health/ready").json()
    assert (answer["status"], answer["parts"][name]) == ("degraded", "late")
    named = f"The {name.replace('_', ' ')} has not"
    assert answer["reasons"][name].startswith(f"{named} reported for 6")
    cache.delete(f"background:{name}")
    answer = client.get("/health/ready").json()
    assert answer["reasons"][name].startswith(f"{named} reported: it is starting")


@pytest.mark.parametrize(
    ("taken", "reported"), [(["celery"], {"worker"}), (None, {"worker", "long_worker"})]
)
def test_a_worker_for_short_tasks_alone_does_not_report_as_a_long_one(monkeypatch, taken, reported):
    queues = app.amqp.queues
    selected = taken and {name: queues[name] for name in taken}
    monkeypatch.setattr(queues, "_consume_from", selected)
    task_queue._noted.clear()
    signals.heartbeat_sent.send(sender=None)
    assert task_queue._noted.keys() == reported
    task_queue._noted.clear()


def test_a_task_that_waits_long_is_reported(client, db, reports):
    forget_answered_writes.delay()
    assert client.get("/health/ready").json()["parts"]["queue"] == "ok"
    message = json.loads(reports.lpop("celery"))
    message["headers"]["queued_at"] -= task_queue.WAITS_TOO_LONG_S + 1
    reports.rpush("celery", json.dumps(message))
    answer = client.get("/health/ready").json()
    assert answer["parts"]["queue"] == "late"
    assert "1 tasks wait, the oldest for 30" in answer["reasons"]["queue"]


def test_without_a_database_it_is_not_ready(client, django_db_blocker, no_database, reports):
    with django_db_blocker.unblock():
        response = client.get("/health/ready")
    assert response.status_code == 503
    assert "database" in response.json()["reasons"]


def test_without_redis_there_is_nothing_to_say_of_the_worker(client, db, settings, tmp_path):
    nobody = f"unix://{tmp_path}/nobody.sock"
    settings.REDIS_URL = nobody
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": nobody,
        }
    }
    answer = client.get("/health/ready").json()
    assert answer["reasons"] == {"redis": "Redis does not answer, or cannot write."}
