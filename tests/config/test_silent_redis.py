"""A Redis that takes connections and never answers counts as away: nothing waits for long."""

from __future__ import annotations

import socket
import threading

import kombu
import pytest
import redis
from django.core.cache.backends.redis import RedisCache
from kombu.exceptions import OperationalError

from config import environment
from settings_app import throttling
from settings_app.api_keys import issue
from tests.config.test_environment import A_SERVER


@pytest.fixture
def silent():
    """Its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture(params=["serves_web", "runs_command"])
def web(request, read_settings, silent, monkeypatch):
    """The settings of a web process, or a command, with that Redis; it waits for a shorter time."""
    monkeypatch.setattr(environment, request.param, True)
    read = read_settings(**{**A_SERVER, "REDIS_URL": silent})
    assert read.REDIS_TIMEOUT_S <= 5
    options = read.CELERY_BROKER_TRANSPORT_OPTIONS
    assert options["socket_timeout"] == read.REDIS_TIMEOUT_S
    options["socket_timeout"] = read.CACHES["default"]["OPTIONS"]["socket_timeout"] = 0.1
    return read


def outcome_of(call):
    """What the call raises or returns; a thread of its own shows one that never ends."""
    outcomes = []

    def run():
        try:
            outcomes.append(call())
        except (redis.RedisError, OperationalError) as error:
            outcomes.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "It waits for Redis without an end."
    return outcomes[0]


def test_the_cache_does_not_wait(web):
    cache = RedisCache(web.REDIS_URL, web.CACHES["default"])
    assert isinstance(outcome_of(lambda: cache.get("name")), redis.TimeoutError)


def test_a_task_is_refused_and_not_waited_for(web):
    options = web.CELERY_BROKER_TRANSPORT_OPTIONS
    with kombu.Connection(web.CELERY_BROKER_URL, transport_options=options) as connection:
        producer = connection.Producer()
        sent = outcome_of(
            lambda: producer.publish(
                {}, routing_key="x", retry_policy={"max_retries": 1}, retry=True
            )
        )
    assert isinstance(sent, OperationalError)


def test_requests_are_counted_by_the_process_itself(silent, settings, alice):
    key = issue(alice, "a program")[0]
    settings.API_RATE, settings.REDIS_URL, settings.REDIS_TIMEOUT_S = "2/day", silent, 0.1
    throttling._storage.cache_clear()
    try:
        rates = outcome_of(lambda: [throttling.count_request(key) for _ in range(3)])
    finally:
        throttling._storage.cache_clear()
    assert [rate.allowed for rate in rates] == [True, True, False]
