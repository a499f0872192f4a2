"""Whether the worker and the clock run, and how long tasks wait in the queue.

The worker and the clock note the time in the cache while they run; each queued task has the time at
which it was queued.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import redis
from django.conf import settings
from django.core.cache import cache

WORKER, CLOCK = "worker", "clock"
# Queues of short and of long tasks. One worker takes only short ones, so that new messages do not
# wait for a long import.
QUEUE, BULK = "celery", "bulk"
QUEUED_AT = "queued_at"
NOTED_EVERY_S = 10
# Without a note for this long, a process is reported as silent; it may just have been started.
SILENT_AFTER_S = 60
# The clock queues some tasks every few seconds: an older one means that the workers are too busy.
WAITS_TOO_LONG_S = 300
_KEPT_S = 24 * 3600

_noted: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class Part:
    """
    Attributes:
        report: A sentence: how it is, or what is wrong and what to do.
        well: Whether nothing is wrong with it.
    """

    report: str
    well: bool = True


def note_running(name: str, **_signal: Any) -> None:
    """Note in the cache that the process `name` runs, at most every `NOTED_EVERY_S` seconds."""
    now = time.monotonic()
    if now - _noted.get(name, -NOTED_EVERY_S) < NOTED_EVERY_S:
        return
    # While Redis is away there is no queue either; the next note comes in seconds.
    with suppress(redis.RedisError):
        cache.set(f"background:{name}", time.time(), _KEPT_S)
        _noted[name] = now


def date_task(headers: dict[str, Any] | None = None, **_signal: Any) -> None:
    """Add the time to a task that is being queued."""
    if headers is not None:
        headers[QUEUED_AT] = time.time()


def background_parts() -> Iterator[tuple[str, Part]]:
    """Worker, clock and queue.

    Raises:
        RedisError: Redis is away.
    """
    for name in (WORKER, CLOCK):
        yield name, _process(name, cache.get(f"background:{name}"))
    yield "queue", _queue()


def _process(name: str, noted_at: float | None) -> Part:
    if noted_at is None:
        return Part(f"The {name} has not run in the last day. Start Loci again.", well=False)
    silent_s = max(time.time() - noted_at, 0)
    if silent_s > SILENT_AFTER_S:
        return Part(
            f"The {name} has not reported for {silent_s:.0f} s. Its log says why; if it does not "
            "run, start Loci again.",
            well=False,
        )
    return Part(f"The {name} reported {silent_s:.0f} s ago.")


def waiting_tasks(queue: str = QUEUE) -> tuple[int, float | None]:
    """How many tasks wait, and for how many seconds the oldest; None where that is unknown.

    Raises:
        RedisError: Redis is away.
    """
    url, patience = settings.REDIS_URL, settings.REDIS_TIMEOUT_S
    with closing(redis.Redis.from_url(url, socket_timeout=patience)) as client:
        waiting = client.llen(queue)
        oldest = client.lindex(queue, -1)
    queued_at = json.loads(oldest)["headers"].get(QUEUED_AT) if oldest else None
    return waiting, None if queued_at is None else max(time.time() - queued_at, 0)


def _queue() -> Part:
    """Long work may wait: there, only the other queue says whether workers run."""
    waiting, age_s = waiting_tasks()
    if not waiting:
        return Part("No task waits.")
    if age_s is None:
        return Part(f"{waiting} tasks wait.")
    report = f"{waiting} tasks wait, the oldest for {age_s:.0f} s."
    if age_s > WAITS_TOO_LONG_S:
        return Part(f"{report} The workers are busy or do not run.", well=False)
    return Part(report)
