"""Alice's working memory, in the Redis of the test run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
import redis

from palace.models import Palace
from palace.working.redis_keys import Namespace
from tests.chat.failures import OwnRedis

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def redis_client(settings):
    with redis.Redis.from_url(settings.REDIS_URL, decode_responses=True) as client:
        yield client


@pytest.fixture
def session():
    return Namespace.read("session/abc")


@pytest.fixture
def other(bob):
    return Palace.objects.own(bob)


@pytest.fixture
def own_redis(settings):
    """A Redis that the test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="loci-"))  # A socket's path must be short.
    server = OwnRedis(folder)
    server.start()
    usual, settings.REDIS_URL = settings.REDIS_URL, server.url
    yield server
    settings.REDIS_URL = usual
    server.kill()
    shutil.rmtree(folder)
