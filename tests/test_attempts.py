"""When work that a task left is queued again: soon after a kill, ever more seldom after errors."""

from __future__ import annotations

import json
import logging
import time
from contextlib import closing
from datetime import timedelta

import kombu
import kombu.pools
import pytest
import redis
from celery import current_app
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, OperationalError
from django.utils import timezone

from palace.mining import tasks
from palace.mining.pipeline import mine_room
from palace.models import ImportJob
from palace.models.concurrency import attempt, due_in
from palace.storage.transcript_filing import file_transcript
from palace.transfer import import_jobs
from settings_app import task_queue
from settings_app.task_queue import BULK, QUEUE
from tests.conversations import BATTERY
from tests.curation.test_deletion import refused
from tests.transfer.importers.exports import plain, write_lines

KIND, KEY = "attempt", 1
LEASE_S = task_queue.LOST_AFTER_S


@pytest.fixture(autouse=True)
def clock(monkeypatch, queued, db):
    """The clock of the queue, which stands still until it is set on."""
    now = [time.time()]
    monkeypatch.setattr(task_queue.time, "time", lambda: now[0])
    yield now
    task_queue.reset_backoff(KIND, KEY)


def is_due():
    return due_in(BULK, KIND)(KEY)


def waits(clock, fails=None):
    """Take the item up; returns for how many seconds it is not due again."""
    assert is_due()
    assert not is_due()
    if fails is not None:
        with pytest.raises(type(fails)), attempt(KIND, KEY):
            raise fails
    wait_s = cache.get(task_queue._backoff_key(KIND, KEY))["wait_s"]
    clock[0] += wait_s - 1
    assert not is_due()
    clock[0] += 1
    return wait_s


def test_what_is_lost_again_and_again_is_taken_up_within_the_same_short_time(clock):
    assert [waits(clock) for _ in range(task_queue.MOST_LOST)] == [LEASE_S] * task_queue.MOST_LOST


def test_what_kills_its_worker_each_time_is_slowed_down_and_told_of(clock, caplog):
    for _ in range(task_queue.MOST_LOST):
        waits(clock)
    assert not caplog.records
    assert [waits(clock) for _ in range(4)] == [30, 60, 120, 240]
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 4
    assert "was lost 5 times in a row and may kill its worker: attempt 1." in caplog.messages[0]
    assert max(waits(clock) for _ in range(12)) == task_queue.LONGEST_BACKOFF_S


def test_what_fails_by_an_error_of_its_own_is_tried_ever_more_seldom(clock):
    assert [waits(clock, ValueError("Bad.")) for _ in range(4)] == [30, 60, 120, 240]
    with attempt(KIND, KEY):
        pass
    assert waits(clock) == LEASE_S


@pytest.mark.parametrize("away", [OperationalError("Away."), redis.ConnectionError("Away.")])
def test_a_service_that_is_away_is_no_error_of_the_item(clock, away):
    assert [waits(clock, away) for _ in range(3)] == [LEASE_S] * 3


def test_a_loss_after_errors_does_not_shorten_the_wait(clock):
    for _ in range(3):
        waits(clock, ValueError("Bad."))
    assert waits(clock) == 120


def test_what_still_waits_in_the_queue_is_neither_lost_nor_queued_again(clock):
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as broker:
        waiting = {"headers": {"task": "t", "queued_at": clock[0] - 60}}
        broker.lpush(BULK, json.dumps(waiting))
        assert is_due()
        clock[0] += 10 * LEASE_S
        assert not is_due()
        broker.delete(BULK)
    assert is_due()


def test_what_is_being_worked_on_is_neither_lost_nor_queued_again(clock):
    assert is_due()
    with attempt(KIND, KEY):
        clock[0] += 10 * LEASE_S
        assert not is_due()
    assert is_due()


def test_what_was_taken_up_while_the_clock_was_ahead_does_not_wait_until_then(clock):
    clock[0] += 7200
    assert is_due()
    clock[0] -= 7200
    assert is_due()


def test_a_task_that_fails_is_slowed_down_by_that(palace, clock):
    room = file_transcript(palace, BATTERY).room
    with refused("palace_drawer", "UPDATE"):
        for _ in range(2):
            with pytest.raises(DatabaseError):
                tasks.mine_room(room.pk)
    assert cache.get(task_queue._backoff_key("room", room.pk))["wait_s"] == 60
    task_queue.reset_backoff("room", room.pk)


def test_a_lost_import_is_taken_up_in_seconds_and_a_waiting_one_is_not(palace, tmp_path, clock):
    job = import_jobs.preview(palace, write_lines(tmp_path / "a", [plain("Q")]))
    import_jobs.start(job)

    def still_since(seconds):
        ImportJob.objects.update(progress_at=timezone.now() - timedelta(seconds=seconds))
        return list(import_jobs.standing_still()) == [job.pk]

    assert not still_since(1)
    assert still_since(LEASE_S + 1)
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as broker:
        waiting = {"headers": {"task": "t", "queued_at": clock[0] - 15}}
        broker.lpush(BULK, json.dumps(waiting))
    assert not still_since(LEASE_S + 1)
    assert still_since(LEASE_S + 16)


def test_a_place_whose_task_was_lost_is_claimed_again(clock):
    assert task_queue.claim_place("task", KEY, QUEUE)
    assert not task_queue.claim_place("task", KEY, QUEUE)
    clock[0] += LEASE_S
    assert task_queue.claim_place("task", KEY, QUEUE)


def test_a_place_whose_task_still_waits_is_not_claimed_again(clock):
    assert task_queue.claim_place("task", KEY, QUEUE)
    with closing(redis.Redis.from_url(settings.REDIS_URL)) as broker:
        waiting = {"headers": {"task": "task", "queued_at": clock[0]}}
        broker.lpush(QUEUE, json.dumps(waiting))
    clock[0] += 10 * LEASE_S
    assert not task_queue.claim_place("task", KEY, QUEUE)


def test_what_could_not_be_queued_holds_no_place(palace, queued, monkeypatch, tmp_path):
    mine_room(file_transcript(palace, BATTERY).room)
    nowhere = kombu.Connection(f"redis+socket://{tmp_path}/nobody.sock")
    with monkeypatch.context() as broken:
        broken.setattr(current_app.amqp, "_producer_pool", kombu.pools.producers[nowhere])
        tasks.enqueue_post_mining(palace.pk)
    assert queued() == []
    tasks.enqueue_post_mining(palace.pk)
    assert queued() == ["learn_facts", "write_episodes"]
