from __future__ import annotations

import contextlib
import copy
import threading

import pytest
from django.db import OperationalError, connection

from api.rest.problems import problem_of
from config.database import base
from config.database.base import DatabaseWrapper

# Of the pool; that of the test itself has none.
ALIAS = "default"


@pytest.fixture
def pooled(db):
    """Makes connections to the test's database that share a pool of two."""
    made = []
    settings = copy.deepcopy(connection.settings_dict)
    settings["OPTIONS"] = {**settings["OPTIONS"], "pool": base.pool_options(2, 0.3)}

    def another():
        made.append(DatabaseWrapper(settings, ALIAS))
        made[-1].inc_thread_sharing()
        return made[-1]

    another.settings = settings
    yield another
    for each in made:
        each.close()
    with contextlib.suppress(KeyError):
        DatabaseWrapper._connection_pools.pop(ALIAS).close()


def ask(wrapper):
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
        return cursor.fetchone()


def test_who_comes_when_all_are_in_use_is_asked_to_come_again(pooled):
    first, second, third = pooled(), pooled(), pooled()
    ask(first)
    ask(second)
    with pytest.raises(OperationalError) as refused:
        ask(third)
    problem = problem_of(refused.value)
    assert (problem.status_code, problem.code) == (503, "too_busy")
    assert problem.headers["Retry-After"] == "5"
    first.close()
    assert ask(third) == (1,)


def test_connections_that_the_server_has_forgotten_are_not_given_out(pooled):
    both = [pooled(), pooled()]
    for wrapper in both:
        ask(wrapper)
    pids = [wrapper.connection.info.backend_pid for wrapper in both]
    for wrapper in both:
        wrapper.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) pid", [pids])
    for wrapper in both:
        assert ask(wrapper) == (1,)


def test_while_the_server_is_away_nobody_waits_and_when_it_is_back_nobody_does(pooled):
    pooled.settings["OPTIONS"]["pool"]["timeout"] = 60
    host = pooled.settings["HOST"]
    pooled.settings.update(HOST="127.0.0.1", PORT="1")
    refused = []

    def try_it():
        try:
            ask(pooled())
        except OperationalError as error:
            refused.append(error)

    waiting = [threading.Thread(target=try_it) for _ in range(3)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join(30)
    assert len(refused) == 3
    pooled.settings.update(HOST=host, PORT=connection.settings_dict["PORT"])
    assert ask(pooled()) == (1,)
