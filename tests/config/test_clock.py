"""The clock puts tasks into the queue by name; what it would have to import stays out of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import redis
from django.conf import settings

from config import celery, clock
from config.timetable import EXPIRES_S, timetable

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
    # Results are kept nowhere, whoever asks for them.
    differ = {"id", "root_id", "expires", "origin", "queued_at", "ignore_result"}
    assert _without(first["headers"], differ) == _without(last["headers"], differ)
    assert first["body"] == last["body"]
    assert (first["headers"]["expires"] is None) == (last["headers"]["expires"] is None)


def _without(headers, names):
    return {name: value for name, value in headers.items() if name not in names}
