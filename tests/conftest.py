"""Alice owns a palace; Bob is a stranger to it."""

from __future__ import annotations

import json

import pytest
import redis
from django.contrib.auth import get_user_model
from django.utils import timezone

from isolation import row_access
from llm import chat_calls
from palace.models import Palace
from palace.transfer.spools import spool_folder
from tests import database_reset, hypothesis_profiles, quick_sign_in, static_files
from tests.conversations import EVERYTHING
from tests.furnished_palaces import furnish_with
from tests.model_server import ModelServer

database_reset.install()
# Tests see all rows; every door opens its own access.
row_access.allow_all_by_default()
static_files.list_once()
quick_sign_in.install()
hypothesis_profiles.register_profiles()


def pytest_addoption(parser):
    parser.addoption(
        "--record-examples",
        action="store_true",
        help="Record the answers that the OpenAPI schema shows.",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Lengthy tests begin first: begun last, they would be waited for by idle workers.

    Those of the browser follow together, whatever the order: the first one starts Chromium, a
    server and a worker, and the next test of another folder ends them.
    """

    def turn(item):
        in_browser = item.path.parent.name == "browser"
        is_lengthy = item.get_closest_marker("lengthy") is not None
        return not (is_lengthy or in_browser), in_browser, not is_lengthy

    items.sort(key=turn)


@pytest.fixture(scope="session")
def django_db_keepdb():
    """Each process has a Postgres of its own, copied with its tables, which goes as a whole."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings_parallel_suffix():
    """Nobody else uses this Postgres: no process needs a database of another name."""


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    """Hashing well takes a quarter of a second a user, which no test is about."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _no_ones_time_zone():
    """A page leaves its reader's active."""
    yield
    timezone.deactivate()


@pytest.fixture(autouse=True)
def _no_spools_left():
    """Copies of imported files are in a folder that tests of one process share."""
    yield
    for path in spool_folder().glob("*"):
        path.unlink()


@pytest.fixture
def alice(db):
    return get_user_model().objects.create_user("alice", "alice@example.org", "alice-password")


@pytest.fixture
def bob(db):
    return get_user_model().objects.create_user("bob", "bob@example.org", "bob-password")


@pytest.fixture
def palace(alice):
    return Palace.objects.own(alice)


@pytest.fixture
def lived_in(palace):
    """Alice's palace after three conversations about a battery, bread and a trip."""
    return furnish_with(palace, *EVERYTHING)


@pytest.fixture
def model_server():
    """A language model we play: a real server that says what the test wants."""
    # A port may come up again; what was learnt of the server there before must not.
    chat_calls._learnt.clear()
    with ModelServer() as server:
        yield server


@pytest.fixture
def queued(settings):
    """The names of the tasks that were really put into Redis, oldest first."""
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.delete("celery", "bulk", *client.keys("*:waits:*"))

    def names(*queues):
        waiting = [client.lrange(queue, 0, -1) for queue in queues or ("celery", "bulk")]
        headers = [json.loads(raw)["headers"] for queue in waiting for raw in queue]
        headers.sort(key=lambda header: header["queued_at"])
        return [header["task"].rpartition(".")[2] for header in headers]

    yield names
    client.delete("celery", "bulk")
    client.close()
