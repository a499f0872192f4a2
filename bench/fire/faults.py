"""The faults: each is a block, during which something is broken."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import psutil
import redis

from bench.fire import scripted_model
from bench.fire.ground import Fault, Ground, kill, send
from bench.fire.installation import CLOCK, LONG, POSTGRES, REDIS, WEB, WORKER
from bench.fire.interrupted import INTERRUPTED
from settings_app import background_work

QUEUES = (background_work.QUEUE, background_work.BULK)
PROGRAMS = (WEB, WORKER, LONG, CLOCK, REDIS, POSTGRES)
# The most tasks that are delivered again at once: more would be load, and no disorder.
MOST_AGAIN = 30


@contextmanager
def _killed(name: str, ground: Ground) -> Iterator[None]:
    """Its main process, and what that left running is nobody's child any more."""
    kill(ground, name)
    yield


@contextmanager
def _child_killed(ground: Ground) -> Iterator[None]:
    """One of the worker's processes that do the tasks, as where the memory is used up."""
    workers = (ground.installation.processes(name) for name in (WORKER, LONG))
    children = [child for processes in workers for child in processes[1:]]
    if children:
        send(ground.draw.choice(children), signal.SIGKILL)
    yield


@contextmanager
def _stopped(name: str, ground: Ground) -> Iterator[None]:
    """All its processes stand still, and then go on where they were."""
    processes = ground.installation.processes(name)
    for process in processes:
        send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            send(process, signal.SIGCONT)


@contextmanager
def _model(how: str, ground: Ground) -> Iterator[None]:
    scripted_model.fail(ground.model, how)
    try:
        yield
    finally:
        scripted_model.recover(ground.model)


@contextmanager
def _queue_doubled(ground: Ground) -> Iterator[None]:
    """What waits and what is being done is delivered once more, in another order."""
    with contextlib.suppress(redis.RedisError), ground.installation.broker() as broker:
        _deliver_again(broker, ground.draw)
    yield


@contextmanager
def _two_workers(ground: Ground) -> Iterator[None]:
    """A second worker gets the same tasks as the first, at the same time."""
    second = ground.installation.second_worker()
    try:
        for _ in range(2):
            time.sleep(4)
            with contextlib.suppress(redis.RedisError), ground.installation.broker() as broker:
                _deliver_again(broker, ground.draw)
        yield
    finally:
        with contextlib.suppress(psutil.Error):
            main = psutil.Process(second.pid)
            for process in [*main.children(recursive=True), main]:
                process.kill()
        second.wait()


@contextmanager
def _disk_full(ground: Ground) -> Iterator[None]:
    assert ground.disk is not None  # noqa: S101 - dealt only where there is one.
    with ground.disk.full():
        yield


@contextmanager
def _disk_read_only(ground: Ground) -> Iterator[None]:
    assert ground.disk is not None  # noqa: S101 - dealt only where there is one.
    with ground.disk.read_only():
        yield


def _deliver_again(broker: redis.Redis, draw: random.Random) -> None:
    # Of what is being done, a value is a message, its exchange and its key.
    under_way: Any = broker.hvals("unacked")
    messages = [json.loads(value)[0] for value in under_way]
    for queue in QUEUES:
        waiting: Any = broker.lrange(queue, 0, -1)
        messages += [json.loads(value) for value in waiting]
    draw.shuffle(messages)
    for message in messages[:MOST_AGAIN]:
        message["properties"]["delivery_tag"] = str(uuid4())
        broker.lpush(draw.choice(QUEUES), json.dumps(message))


FAULTS: dict[str, Fault] = {
    **{f"{name} killed": partial(_killed, name) for name in PROGRAMS},
    "worker's process killed": _child_killed,
    **{f"{name} stopped for a while": partial(_stopped, name) for name in PROGRAMS},
    **{f"model {how}": partial(_model, how) for how in scripted_model.FAILURES},
    "tasks delivered twice, in disorder": _queue_doubled,
    "two workers with the same tasks": _two_workers,
    **INTERRUPTED,
}
# What is over at once; the others last a few seconds.
AT_ONCE = {
    *(name for name in FAULTS if "killed" in name),
    "tasks delivered twice, in disorder",
    *INTERRUPTED,
}
ON_DISK: dict[str, Fault] = {"disk full": _disk_full, "disk read-only": _disk_read_only}


def schedule(draw: random.Random, number: int, names: Sequence[str]) -> list[str]:
    """So many faults: all kinds in a random order, and then again."""
    dealt: list[str] = []
    while len(dealt) < number:
        dealt += draw.sample(names, len(names))
    return dealt[:number]
