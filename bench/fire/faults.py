"""The faults: each is a block, during which something is broken, and says whether it was at work.

`Ground` is what they are done to. Those that begin something long and then kill it are in
`bench.fire.interrupted`.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import psycopg
import redis

from bench.fire import surroundings
from bench.fire.installation import (
    CLOCK,
    LONG,
    POSTGRES,
    REDIS,
    SECOND,
    WEB,
    WORKER,
    WORKERS,
    Installation,
    send,
    wait_until,
)
from bench.fire.load import Client, Load
from bench.fire.proof import KEYED
from bench.fire.surroundings import OwnClock, OwnDisk
from bench.model_server import CHAT, ModelServer
from bench.stub_servers import Receiver
from settings_app import task_queue

QUEUES = (task_queue.QUEUE, task_queue.BULK)
PROGRAMS = (WEB, WORKER, LONG, CLOCK, REDIS, POSTGRES)
# Tasks that mine a conversation, each queued with the same arguments for the same one.
MINING = {"palace.tasks.mine_room", "chat.tasks.mine_conversation", "chat.tasks.mine_proxied"}
# Seconds: the most that is waited for what is to be broken, and for it to be at work.
THERE_S, AT_WORK_S = 60, 10
# The fewest tasks that have an order, and the most that are delivered again at once: more would be
# load, and no disorder.
LEAST_AGAIN, MOST_AGAIN = 3, 30
# Messages of a conversation that is mined for a while.
LONG_TALK = 100
# Transactions that have written.
_WRITING = "SELECT FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
_TIME = "SELECT extract(epoch FROM clock_timestamp())::float8"


class Missed(Exception):
    """What was to be broken was not there, or not at work; the message says what."""


@contextmanager
def _killed(name: str, ground: Ground) -> Iterator[bool | None]:
    """Its main process, and what that left running is nobody's child any more."""
    find(ground, name)
    doing = _look_at_work(ground, name)
    kill(ground, name)
    if doing and name in WORKERS:
        # What it had not acknowledged by then it never will.
        doing &= _unacknowledged(ground)
    yield None if doing is None else bool(doing)


def _look_at_work(ground: Ground, name: str) -> set[str] | None:
    """What it is doing, once it does something, if that comes soon; None where that is unknown."""
    found: set[str] = set()

    def is_at_work() -> bool:
        if name == POSTGRES:
            with contextlib.suppress(psycopg.Error):
                found.update("writes" for _ in ground.installation.rows(_WRITING))
        else:
            found.update(task["id"] for task in ground.installation.tasks(name).get(name, ()))
        return bool(found)

    if name != POSTGRES and name not in WORKERS:
        return None
    wait_until(is_at_work, AT_WORK_S, every_s=0.02)
    return found


def _unacknowledged(ground: Ground) -> set[str]:
    """The ids of tasks that workers have taken."""
    with contextlib.suppress(redis.RedisError), ground.installation.broker() as broker:
        taken: Any = broker.hvals("unacked")
        return {json.loads(value)[0]["headers"]["id"] for value in taken}
    return set()


@contextmanager
def _child_killed(ground: Ground) -> Iterator[bool]:
    """One of the worker's processes that do the tasks, as where the memory is used up."""
    name = ground.draw.choice(WORKERS)
    if not wait_until(lambda: len(ground.installation.processes(name)) > 1, THERE_S):
        raise Missed(f"The {name} has no process that does tasks.")
    doing = _look_at_work(ground, name)
    for child in ground.installation.processes(name)[1:]:
        send(child, signal.SIGKILL)
    yield bool(doing)


@contextmanager
def _stopped(name: str, ground: Ground) -> Iterator[None]:
    """All its processes stand still, and then go on where they were."""
    processes = find(ground, name)
    for process in processes:
        send(process, signal.SIGSTOP)
    try:
        if not wait_until(lambda: _stands_still(processes[0]), AT_WORK_S):
            raise Missed(f"{name} ended while it was being stopped.")
        yield
    finally:
        for process in processes:
            send(process, signal.SIGCONT)


def _stands_still(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False


@contextmanager
def _model(how: str, ground: Ground) -> Iterator[None]:
    before = len(ground.model.requests_to(CHAT))
    surroundings.fail(ground.model, how)
    try:
        if not wait_until(lambda: len(ground.model.requests_to(CHAT)) > before, THERE_S):
            raise Missed("Nobody asked the model.")
        yield
    finally:
        surroundings.recover(ground.model)


@contextmanager
def _receiver_failing(ground: Ground) -> Iterator[None]:
    """Who receives the webhooks answers with an error; each event is sent again later."""
    before = len(ground.receiver.heard)
    ground.receiver.answer = 500
    try:
        if not wait_until(
            lambda: any(each.reply == 500 for each in ground.receiver.heard[before:]), THERE_S
        ):
            raise Missed("No event was sent.")
        yield
    finally:
        ground.receiver.answer = 204


@contextmanager
def _queue_doubled(ground: Ground) -> Iterator[bool]:
    """What waits and what is being done is delivered once more, in another order."""
    if not wait_until(lambda: deliver_again(ground, LEAST_AGAIN), THERE_S):
        raise Missed("There were never enough tasks to be in disorder.")
    yield True


@contextmanager
def _two_workers(ground: Ground) -> Iterator[bool]:
    """A second worker gets the same tasks as the first, at the same time."""
    with _beside(ground, ground.installation.second_worker()):
        yield True


@contextmanager
def _older_worker(ground: Ground) -> Iterator[bool]:
    """The same, and the second one is of an older version, as in the midst of an upgrade."""
    assert ground.before is not None  # noqa: S101 - dealt only where there is one.
    with _beside(ground, ground.installation.second_worker(ground.before)):
        yield True


@contextmanager
def _older_web(ground: Ground) -> Iterator[bool]:
    """A web of an older version takes writes as well, and is killed amid them: what it did not
    answer is repeated, under its key, to the newer one."""
    assert ground.before is not None  # noqa: S101 - dealt only where there is one.
    address, web = ground.installation.second_web(ground.before)
    client = ground.load.another_program(address)
    over = threading.Event()
    writing = threading.Thread(target=_write_until, args=[over, ground.load, client])
    writing.start()
    try:
        if not wait_until(lambda: client.answers[201], THERE_S):
            raise Missed("The older version's web took no write.")
        yield True
    finally:
        web.kill()
        web.wait()
        client.client.base_url = ground.installation.address
        over.set()
        writing.join()


def _write_until(over: threading.Event, load: Load, client: Client) -> None:
    # Into the conversation that is written through the newer web, too.
    while not over.is_set():
        load.keyed(client)


@contextmanager
def _beside(ground: Ground, second: subprocess.Popen[bytes]) -> Iterator[None]:
    """Goes on once two workers, the second among them, were mining one conversation at once."""
    try:
        if not wait_until(lambda: SECOND in ground.installation.tasks(SECOND), THERE_S):
            raise Missed("The second worker did not start.")
        client = ground.load.another_program()
        deadline = time.monotonic() + THERE_S
        while not wait_until(lambda: _mine_the_same(ground), 3, every_s=0.02):
            if time.monotonic() > deadline:
                raise Missed("The two workers never mined one conversation at once.")
            talk = [ground.load.words(KEYED) for _ in range(LONG_TALK)]
            ground.load.turn_until_accepted(client, *talk)
            for _ in range(2):
                deliver_again(ground)
        yield
    finally:
        with contextlib.suppress(psutil.Error):
            main = psutil.Process(second.pid)
            for process in [*main.children(recursive=True), main]:
                process.kill()
        second.wait()


def _mine_the_same(ground: Ground) -> bool:
    doing = ground.installation.tasks(*WORKERS, SECOND)
    mined = {
        worker: {(task["name"], str(task["args"])) for task in tasks if task["name"] in MINING}
        for worker, tasks in doing.items()
    }
    seconds = mined.pop(SECOND, set())
    return any(not seconds.isdisjoint(of_one) for of_one in mined.values())


@contextmanager
def _clock_jumped(by_s: int, ground: Ground) -> Iterator[None]:
    """All programs at once, as on a machine whose clock is set; then back."""
    assert ground.clock is not None  # noqa: S101 - dealt only where there is one.
    with ground.clock.jumped(by_s):
        # A program looks once a second.
        if not wait_until(lambda: _is_off(ground, by_s), THERE_S):
            raise Missed("The database's clock did not jump.")
        time.sleep(1)
        yield


def _is_off(ground: Ground, by_s: int) -> bool:
    with contextlib.suppress(psycopg.Error):
        [(now,)] = ground.installation.rows(_TIME)
        return abs(float(now) - time.time() - by_s) < THERE_S
    return False


@contextmanager
def _disk_full(ground: Ground) -> Iterator[None]:
    assert ground.disk is not None  # noqa: S101 - dealt only where there is one.
    with ground.disk.full():
        _expect_refusal(ground.disk)
        yield


@contextmanager
def _disk_read_only(ground: Ground) -> Iterator[None]:
    assert ground.disk is not None  # noqa: S101 - dealt only where there is one.
    with ground.disk.read_only():
        _expect_refusal(ground.disk)
        yield


def _expect_refusal(disk: OwnDisk) -> None:
    trial = disk.folder / "trial"
    try:
        trial.write_bytes(b"\0" * 4096)
    except OSError:
        return
    finally:
        with contextlib.suppress(OSError):
            trial.unlink(missing_ok=True)
    raise Missed("The disk could be written to.")


def deliver_again(ground: Ground, least: int = 0) -> bool:
    """Whether at least so many tasks were there; they are queued once more, in another order."""
    with contextlib.suppress(redis.RedisError), ground.installation.broker() as broker:
        # Of what is being done, a value is a message, its exchange and its key.
        under_way: Any = broker.hvals("unacked")
        messages = [json.loads(value)[0] for value in under_way]
        for queue in QUEUES:
            waiting: Any = broker.lrange(queue, 0, -1)
            messages += [json.loads(value) for value in waiting]
        if len(messages) < least:
            return False
        for message in in_disorder(messages, ground.draw)[:MOST_AGAIN]:
            message["properties"]["delivery_tag"] = str(uuid4())
            broker.lpush(ground.draw.choice(QUEUES), json.dumps(message))
        return True
    return False


def in_disorder(messages: Sequence[Any], draw: random.Random) -> list[Any]:
    """Shuffled, and never as they were."""
    other = list(messages)
    draw.shuffle(other)
    return other if other != list(messages) else other[::-1]


FAULTS: dict[str, Fault] = {
    **{f"{name} killed": partial(_killed, name) for name in PROGRAMS},
    "worker's process killed": _child_killed,
    **{f"{name} stopped for a while": partial(_stopped, name) for name in PROGRAMS},
    **{f"model {how}": partial(_model, how) for how in surroundings.FAILURES},
    "webhook receiver failing": _receiver_failing,
    "tasks delivered twice, in disorder": _queue_doubled,
    "two workers with the same tasks": _two_workers,
}
# What is over at once; the others last a few seconds.
AT_ONCE = {
    *(name for name in FAULTS if "killed" in name),
    "tasks delivered twice, in disorder",
}
ON_DISK: dict[str, Fault] = {"disk full": _disk_full, "disk read-only": _disk_read_only}
BY_CLOCK: dict[str, Fault] = {
    "clock two hours ahead, then back": partial(_clock_jumped, 2 * 3600),
    "clock two hours behind, then back": partial(_clock_jumped, -2 * 3600),
}
IN_UPGRADE: dict[str, Fault] = {
    "an older version's worker beside": _older_worker,
    "an older version's web beside": _older_web,
}


@dataclass(frozen=True, slots=True)
class Ground:
    """
    Attributes:
        draw: Decides whatever is left to chance.
        disk: The file system of the installation; None where it shares one.
        clock: Its clock; None where it has the machine's.
        before: The folder of an older version, if one is given.
        damaged: What interrupted work has left behind, in sentences; empty if nothing is wrong.
    """

    installation: Installation
    model: ModelServer
    receiver: Receiver
    load: Load
    draw: random.Random
    disk: OwnDisk | None
    clock: OwnClock | None = None
    before: Path | None = None
    damaged: list[str] = field(default_factory=list)


# A block during which something is broken. It says whether what was killed was doing its work at
# that moment; None where that is not looked at. It raises `Missed` if there was nothing to break.
Fault = Callable[[Ground], AbstractContextManager[bool | None]]


def find(ground: Ground, name: str) -> list[psutil.Process]:
    """A program's processes, its main one first; one that is about to start is waited for.

    Raises:
        Missed: It does not start.
    """
    found: list[psutil.Process] = []

    def is_there() -> bool:
        found[:] = ground.installation.processes(name)
        return bool(found)

    if not wait_until(is_there, THERE_S):
        raise Missed(f"{name} was not running.")
    return found


def kill(ground: Ground, name: str, *, whole: bool = False) -> None:
    """Kill a program's main process, or at once all that it has; if it is running."""
    for process in ground.installation.processes(name)[: None if whole else 1]:
        send(process, signal.SIGKILL)
