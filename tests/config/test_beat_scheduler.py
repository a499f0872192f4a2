"""The clock of a machine is set while Loci runs: periodic tasks go on being queued."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings

from bench.fire.installation import own_clock
from config import clock
from config.beat_scheduler import Scheduler
from tests.polling import until


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
