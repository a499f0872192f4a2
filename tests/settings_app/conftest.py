"""Counts of guesses outlast a test, as they outlast a request: each test begins without any."""

from __future__ import annotations

import pytest
import redis
from django.conf import settings


@pytest.fixture(autouse=True)
def counters():
    """The Redis that holds them."""
    store = redis.Redis.from_url(settings.REDIS_URL)
    yield store
    for key in store.scan_iter("*:attempts:*"):
        store.delete(key)
    store.close()
