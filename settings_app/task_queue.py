"""The queue of tasks: whether it is worked on, and when a task is put into it.

Left work is found, failing work is retried with backoff, and work that waits is not queued twice.
The worker and the clock note the time in the cache while they run; each queued task has the time at
which it was queued.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import InterfaceError, OperationalError
from django.db.models import Q
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

logger = logging.getLogger(__name__)

# Whichever worker reports is a worker; one that takes long tasks is a long worker, too.
WORKER, LONG_WORKER, CLOCK = "worker", "long_worker", "clock"
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
    """Workers, clock and queue.

    Raises:
        RedisError: Redis is away.
    """
    for name in (WORKER, LONG_WORKER, CLOCK):
        yield name, _process(name, cache.get(f"background:{name}"))
    yield "queue", _queue()


def _process(name: str, noted_at: float | None) -> Part:
    name = name.replace("_", " ")
    if noted_at is None:
        return Part(
            f"The {name} has not reported: it is starting, or has not run in the last day. If this "
            "stays so for a minute, start Loci again.",
            well=False,
        )
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


LONGEST_BACKOFF_S = 6 * 3600
# An item that no process works on and whose task no longer waits is taken up again after this time.
LOST_AFTER_S = 10
# After so many losses in a row the item itself may kill its process, and waits longer each time.
MOST_LOST = 5
# The most that passes between noting that a task is queued and queueing it.
QUEUED_WITHIN_S = 5
# A place that is not released within this time is free again.
WAITS_AT_MOST_S = 600
# Errors that say nothing of the item: it is as if its process had been killed.
SERVICE_AWAY = (OperationalError, InterfaceError, BrokerError, redis.RedisError)


class _Attempts(TypedDict):
    """
    Attributes:
        at: When the item was queued or failed, in seconds since the epoch.
        wait_s: For how long it is not queued again.
        lost: How often in a row it was queued by a sweep without any outcome.
        failed: How often in a row it ended with an error of its own.
    """

    at: float
    wait_s: float
    lost: int
    failed: int


def is_left(field: str, *, ahead_s: float = 0, before: datetime | None = None) -> Q:
    """Rows whose work was to begin at the moment in this field, and that no task has taken up.

    A moment further ahead than any is set is of a clock that was ahead. It counts as well, or the
    work would wait until then.

    Args:
        ahead_s: How far ahead moments are set in this field.
        before: Work that was to begin before this moment is left; default: `TAKE_UP_AFTER_S` ago.
    """
    now = timezone.now()
    passed = Q((f"{field}__lt", before or now - timedelta(seconds=settings.TAKE_UP_AFTER_S)))
    return passed | Q((f"{field}__gt", now + timedelta(seconds=ahead_s)))


def begun_until(queue: str) -> float:
    """Tasks queued before this moment have begun, or are lost; in seconds since the epoch.

    Raises:
        RedisError: Redis is away.
    """
    waiting, oldest_s = waiting_tasks(queue)
    return time.time() - (oldest_s or 0 if waiting else 0)


def left_before(queue: str) -> datetime:
    """Work whose task was queued before this moment was lost, unless it is running.

    Raises:
        RedisError: Redis is away.
    """
    now = timezone.now()
    ago_s = max(time.time() - begun_until(queue), 0) + LOST_AFTER_S
    return now - timedelta(seconds=min(ago_s, settings.TAKE_UP_AFTER_S))


def is_due(kind: str, key: int, begun: float, *, is_running: Callable[[], bool]) -> bool:
    """Whether to queue this work item now; if so, that counts as lost until it has an outcome.

    An item that was lost is due again in seconds, wherever its process was killed. Of one that
    fails, or that is lost again and again, the interval doubles until `reset_backoff`. So items
    that always fail do not block others.

    Args:
        begun: What `begun_until` said of the queue that the item's task goes to.
        is_running: Whether a process is working on it; asked only if it would be due.
    """
    attempts = _attempts(kind, key)
    now = time.time()
    if attempts is not None:
        # A moment that lies ahead is of a clock that was ahead.
        if 0 <= now - attempts["at"] < attempts["wait_s"]:
            return False
        if _may_still_wait(attempts["at"], begun):
            return False
    if is_running():
        return False
    lost = (attempts["lost"] if attempts else 0) + 1
    failed = attempts["failed"] if attempts else 0
    wait_s = _store(kind, key, lost, failed)
    if lost > MOST_LOST:
        logger.error(
            "A task was lost %s times in a row and may kill its worker: %s %s. It is tried once "
            "more now, and after that in %.0f s.",
            lost - 1,
            kind,
            key,
            wait_s,
        )
    return True


@contextmanager
def outcome(kind: str, key: int) -> Iterator[None]:
    """Note how an attempt at an item ends; of a process that is killed nothing is noted."""
    try:
        yield
    except SERVICE_AWAY:
        raise
    except Exception:
        attempts = _attempts(kind, key)
        with suppress(redis.RedisError):
            _store(kind, key, 0, (attempts["failed"] if attempts else 0) + 1)
        raise
    reset_backoff(kind, key)


def reset_backoff(kind: str, key: int) -> None:
    """After success: the item is due at once next time."""
    cache.delete(_backoff_key(kind, key))


def claim_place(task: str, key: int, queue: str) -> bool:
    """Whether to queue a task that does all there is to do: False while one of that key waits.

    The task calls `release_place` before it looks for work, so what comes later is queued again.
    A place whose task has been lost is claimed again.
    """
    place, now = _place_key(task, key, queue), time.time()
    if cache.add(place, now, timeout=WAITS_AT_MOST_S):
        return True
    claimed = cache.get(place, 0.0)
    if 0 <= now - claimed < LOST_AFTER_S or _may_still_wait(claimed, begun_until(queue)):
        return False
    cache.set(place, now, timeout=WAITS_AT_MOST_S)
    return True


def release_place(task: str, key: int) -> None:
    """The task has begun. It may be queued again: it may not see what is stored after this."""
    with suppress(redis.RedisError):
        cache.delete_many([_place_key(task, key, queue) for queue in (QUEUE, BULK)])


def _may_still_wait(noted_at: float, begun: float) -> bool:
    """Whether a task whose queueing was noted at that moment may still be in the queue."""
    return begun <= noted_at + QUEUED_WITHIN_S <= time.time()


def _attempts(kind: str, key: int) -> _Attempts | None:
    found: _Attempts | None = cache.get(_backoff_key(kind, key))
    return found


def _store(kind: str, key: int, lost: int, failed: int) -> float:
    """Returns for how many seconds the item is not queued again."""
    times = failed + max(lost - MOST_LOST, 0)
    wait_s = min(LOST_AFTER_S, settings.TAKE_UP_AFTER_S)
    if times:
        # Bounds the power; the result is capped anyway.
        wait_s = min(settings.TAKE_UP_AFTER_S * 2 ** min(times - 1, 16), LONGEST_BACKOFF_S)
    attempts = _Attempts(at=time.time(), wait_s=wait_s, lost=lost, failed=failed)
    cache.set(_backoff_key(kind, key), attempts, timeout=2 * LONGEST_BACKOFF_S)
    return wait_s


def _place_key(task: str, key: int, queue: str) -> str:
    return f"waits:{queue}:{task}:{key}"


def _backoff_key(kind: str, key: int) -> str:
    return f"take-up-{kind}-{key}"
