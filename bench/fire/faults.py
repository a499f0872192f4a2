"""The faults: each is a block, during which something is broken.

Some begin something long and then kill what does it: a purge, a dream, a restore. `Ground` is what
they are done to.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
import psycopg
import redis

from bench.fire import scripted_model
from bench.fire.installation import (
    CLOCK,
    LONG,
    POSTGRES,
    REDIS,
    WEB,
    WORKER,
    Installation,
    OwnClock,
    OwnDisk,
    send,
    wait_until,
)
from bench.fire.ledger import Words
from bench.fire.load import FACTS, KEYED, Client, Load
from bench.model_server import EMBEDDINGS, ModelServer, Slow
from bench.stub_servers import Receiver
from settings_app import task_queue

PURGED = "purged"
TRASHED = 4
_PURGED = {"user_id": PURGED}
# A command needs so long before it begins its work, more or less.
BEGINS_S = 3
# The most that is waited for messages that can be embedded, and for the first vectors.
MINED_S = 60
OTHER_DIMENSIONS = 64
QUEUES = (task_queue.QUEUE, task_queue.BULK)
PROGRAMS = (WEB, WORKER, LONG, CLOCK, REDIS, POSTGRES)
# The most tasks that are delivered again at once: more would be load, and no disorder.
MOST_AGAIN = 30


@contextmanager
def _purge(ground: Ground) -> Iterator[None]:
    """The web is killed while it empties a trash; the request is then repeated."""
    load, client = ground.load, ground.load.another_program()
    messages = [load.words(PURGED) for _ in range(TRASHED)]
    drawers = [key for words in messages for key in load.turn_until_accepted(client, words)]
    if not _trash(ground, client, drawers):
        yield
        return
    load.ledger.deleting(messages)
    asking = threading.Thread(target=_empty, args=[client])
    asking.start()
    time.sleep(ground.draw.uniform(0, 0.2))
    kill(ground, WEB)
    yield
    asking.join()
    if load.insist(lambda: _empty(client), {200, 202}):
        load.ledger.deleted(messages)


def _trash(ground: Ground, client: Client, drawers: list[str]) -> bool:
    """Drawers that were moved to the trash by a request whose answer is lost stay there."""
    body = {"drawers": drawers}
    return ground.load.insist(
        lambda: client.ask("POST", "/v1/drawers/trash/", params=_PURGED, json=body), {200}
    )


def _empty(client: Client) -> httpx.Response | None:
    return client.ask("POST", "/v1/trash/empty/", params=_PURGED, json={})


@contextmanager
def _dream(ground: Ground) -> Iterator[None]:
    """A dream over the facts is killed; the next night goes on."""
    command = ("dream", "--subject", FACTS)
    dreaming = ground.installation.command(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(BEGINS_S + ground.draw.uniform(0, 3))
    dreaming.kill()
    dreaming.wait()
    yield


@contextmanager
def _restore(ground: Ground) -> Iterator[None]:
    """The worker is killed while it puts an exported palace back, into a new one."""
    load, client = ground.load, ground.load.another_program()
    exported = client.ask("GET", "/v1/export", params={"user_id": KEYED})
    if exported is None or exported.status_code != 200:
        yield
        return
    subject = f"restored-{uuid4().hex[:8]}"
    path = ground.installation.home.parent / f"{subject}.zip"
    path.write_bytes(exported.content)
    command = ("import_chats", str(path), "--subject", subject, "--yes", "--background")
    importing = ground.installation.command(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if importing.wait() == 0:
        load.ledger.accept_all(_messages_of(path, subject))
    time.sleep(ground.draw.uniform(0, 1))
    kill(ground, LONG)
    yield


@contextmanager
def _reembed(ground: Ground) -> Iterator[None]:
    """A change of the embedding model is killed when a part of the vectors is there."""
    if not wait_until(lambda: _palaces_mined(ground) > 1, MINED_S):
        ground.load.wrong.append("No two palaces were mined in time: reembed was not interrupted.")
        yield
        return
    # The first batch gets its vectors, and the next one waits for them until the end.
    ground.model.script(
        [scripted_model.vectors_of(OTHER_DIMENSIONS), *[Slow(60)] * 4], path=EMBEDDINGS
    )
    before = len(ground.model.requests_to(EMBEDDINGS))
    other = {
        "LOCI_EMBEDDING_PROVIDER": ground.model.base_url,
        "LOCI_EMBEDDING_MODEL": "scripted",
        "LOCI_EMBEDDING_DIMENSIONS": str(OTHER_DIMENSIONS),
    }
    building = ground.installation.command(
        "reembed", environment=other, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(
        lambda: (
            len(ground.model.requests_to(EMBEDDINGS)) > before + 1 or building.poll() is not None
        ),
        MINED_S,
    )
    if building.poll() is not None:
        ended = f"reembed ended by itself, with {building.returncode}: it was not interrupted."
        ground.load.wrong.append(ended)
    building.kill()
    building.wait()
    ground.model.recover(EMBEDDINGS)
    yield


def _palaces_mined(ground: Ground) -> int:
    with contextlib.suppress(psycopg.Error):
        [(count,)] = ground.installation.rows(
            "SELECT count(DISTINCT palace_id) FROM palace_drawer WHERE mined_at IS NOT NULL"
        )
        return int(count)
    return 0


def _messages_of(path: Path, subject: str) -> list[Words]:
    with zipfile.ZipFile(path) as exported:
        lines = exported.read("data/drawers.jsonl").splitlines()
    return [Words(subject, json.loads(line)["text"]) for line in lines]


INTERRUPTED: dict[str, Fault] = {
    "purge interrupted": _purge,
    "dream interrupted": _dream,
    "restore interrupted": _restore,
    "reembed interrupted": _reembed,
}


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
def _receiver_failing(ground: Ground) -> Iterator[None]:
    """Who receives the webhooks answers with an error; each event is sent again later."""
    ground.receiver.answer = 500
    try:
        yield
    finally:
        ground.receiver.answer = 204


@contextmanager
def _queue_doubled(ground: Ground) -> Iterator[None]:
    """What waits and what is being done is delivered once more, in another order."""
    with contextlib.suppress(redis.RedisError), ground.installation.broker() as broker:
        _deliver_again(broker, ground.draw)
    yield


@contextmanager
def _two_workers(ground: Ground) -> Iterator[None]:
    """A second worker gets the same tasks as the first, at the same time."""
    with _beside(ground, ground.installation.second_worker()):
        yield


@contextmanager
def _older_worker(ground: Ground) -> Iterator[None]:
    """The same, and the second one is of an older version, as in the midst of an upgrade."""
    assert ground.before is not None  # noqa: S101 - dealt only where there is one.
    with _beside(ground, ground.installation.second_worker(ground.before)):
        yield


@contextmanager
def _older_web(ground: Ground) -> Iterator[None]:
    """A web of an older version takes writes as well, and is killed amid them: what it did not
    answer is repeated, under its key, to the newer one."""
    assert ground.before is not None  # noqa: S101 - dealt only where there is one.
    address, web = ground.installation.second_web(ground.before)
    client = ground.load.another_program(address)
    over = threading.Event()
    writing = threading.Thread(target=_write_until, args=[over, ground.load, client])
    writing.start()
    try:
        yield
    finally:
        web.kill()
        web.wait()
        client.client.base_url = ground.installation.address
        over.set()
        writing.join()
        if not client.answers[201]:
            ground.load.wrong.append("The older version's web took no write.")


def _write_until(over: threading.Event, load: Load, client: Client) -> None:
    # Into the conversation that is written through the newer web, too.
    while not over.is_set():
        load.keyed(client)


@contextmanager
def _beside(ground: Ground, second: subprocess.Popen[bytes]) -> Iterator[None]:
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
def _clock_jumped(by_s: int, ground: Ground) -> Iterator[None]:
    """All programs at once, as on a machine whose clock is set; then back."""
    assert ground.clock is not None  # noqa: S101 - dealt only where there is one.
    with ground.clock.jumped(by_s):
        # A program looks once a second.
        time.sleep(2)
        yield


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
    "webhook receiver failing": _receiver_failing,
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
    """

    installation: Installation
    model: ModelServer
    receiver: Receiver
    load: Load
    draw: random.Random
    disk: OwnDisk | None
    clock: OwnClock | None = None
    before: Path | None = None


# A block during which something is broken.
Fault = Callable[[Ground], AbstractContextManager[None]]


def kill(ground: Ground, name: str) -> None:
    """Kill a program's main process, if it is running."""
    for process in ground.installation.processes(name)[:1]:
        send(process, signal.SIGKILL)
