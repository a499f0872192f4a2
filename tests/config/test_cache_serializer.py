"""The cache: JSON in Redis, and counters that Redis counts with."""

from __future__ import annotations

import pickle

import pytest
import redis
from django.conf import settings
from django.core.cache import cache


@pytest.fixture
def store():
    return redis.Redis.from_url(settings.REDIS_URL)


def test_values_come_back_and_lie_in_redis_as_json(store):
    cache.set("a-value", {"words": "é"}, 60)
    assert cache.get("a-value") == {"words": "é"}
    assert store.get(cache.make_key("a-value")) == b'{"words": "\\u00e9"}'


def test_counters_are_counted_by_redis():
    cache.set("a-counter", 4, 60)
    assert cache.incr("a-counter") == 5
    assert cache.get("a-counter") == 5


def test_a_pickle_that_somebody_put_there_is_not_run(store, tmp_path):
    class Touch:
        def __reduce__(self):
            return (open, (str(tmp_path / "was-run"), "w"))

    store.set(cache.make_key("a-trap"), pickle.dumps(Touch()), 60)
    with pytest.raises(ValueError, match=r"Expecting value|codec"):
        cache.get("a-trap")
    assert not (tmp_path / "was-run").exists()
