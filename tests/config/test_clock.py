"""The clock puts tasks into the queue by name; what it would have to import stays out of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
import redis
from django.conf import settings

from bench.fire.surroundings import own_clock
from config import celery, clock
from config.celery import EXPIRES_S, timetable
from config.clock import Scheduler
from tests.polling import until

# What takes most of the time and memory of setting Django up.
HEAVY = ("palace", "chat", "api", "openai", "numpy", "rest_framework", "mcp")


def test_every_task_is_there_and_expires_as_it_says_itself():
    celery.app.loader.import_default_modules()
    entries = timetable(back_up_every_h=24).values()
    expected = {each["task"]: celery.app.tasks[each["task"]].expires for each in entries}
    assert {each["task"]: each["options"].get("expires") for each in entries} == expected
    assert set(EXPIRES_S) <= set(expected)


def test_it_imports_no_task_and_no_model():
    script = (
        "import sys; from config.clock import app; app.loader.init_worker(); app.finalize();"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    started = subprocess.run(
        [sys.executable, "-c", script],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = started.stdout.split()
    assert "celery" in imported
    assert [name for name in HEAVY if name in imported] == []


@pytest.mark.parametrize(
    ("name", "queue"),
    [("palace.tasks.embed_missing", "bulk"), ("chat.tasks.take_up_conversations", "celery")],
)
def test_what_is_due_lies_in_its_queue_as_a_worker_expects_it(queued, name, queue):
    [entry] = [each for each in clock.app.conf.beat_schedule.values() if each["task"] == name]
    clock.app.send_task(name, **entry["options"])
    celery.app.loader.import_default_modules()
    celery.app.tasks[name].apply_async()
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        last, first = (json.loads(each) for each in client.lrange(queue, 0, -1))
    # Results are never stored. The clock sets no limit: the worker's counts.
    differ = {"id", "root_id", "expires", "origin", "queued_at", "ignore_result", "timelimit"}
    assert first["headers"]["timelimit"] == [None, None]
    assert _without(first["headers"], differ) == _without(last["headers"], differ)
    assert first["body"] == last["body"]
    assert (first["headers"]["expires"] is None) == (last["headers"]["expires"] is None)


def _without(headers, names):
    return {name: value for name, value in headers.items() if name not in names}


@pytest.fixture
def schedule(tmp_path):
    return str(tmp_path / "schedule")


def _started(schedule):
    return Scheduler(clock.app, schedule_filename=schedule)


def _tick_until_none_is_due(scheduler):
    while not scheduler.tick():
        pass


def test_a_schedule_stored_by_a_clock_that_was_ahead_is_followed_at_once(queued, schedule):
    before = _started(schedule)
    for entry in before.schedule.values():
        entry.last_run_at += timedelta(hours=2)
    before.close()
    after = _started(schedule)
    try:
        _tick_until_none_is_due(after)
        assert queued() == []
        for entry in after.schedule.values():
            assert entry.last_run_at <= entry.default_now()
    finally:
        after.close()


def test_it_looks_at_the_clock_every_few_seconds(schedule):
    scheduler = _started(schedule)
    try:
        assert 0 < scheduler.tick() <= 5
    finally:
        scheduler.close()


@pytest.mark.exhaustive
def test_tasks_are_queued_while_the_clock_is_moved_and_after(queued, tmp_path, schedule):
    if (moving := own_clock(tmp_path)) is None:
        pytest.skip("The library that moves a clock needs a C compiler.")
    command = [sys.executable, "-m", "celery", "-A", "config.clock", "beat", "-s", schedule]
    environment = {**os.environ, **moving.environment()}
    with subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment) as beat:
        try:
            _wait_for_tasks(queued)
            for by_s in (7200, -7200):
                with moving.jumped(by_s):
                    _wait_for_tasks(queued)
            _wait_for_tasks(queued)
        finally:
            beat.terminate()


def _wait_for_tasks(queued):
    """More than may be queued before a move is noticed."""
    before = len(queued())
    until(lambda: len(queued()) >= before + 3)
