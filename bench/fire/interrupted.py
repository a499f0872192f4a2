"""Faults that begin something long and then kill what does it: a purge, a dream, a restore."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx

from bench.fire.ground import Fault, Ground, kill
from bench.fire.installation import WEB, WORKER
from bench.fire.ledger import Words
from bench.fire.load import FACTS, KEYED, Client

PURGED = "purged"
TRASHED = 4
_PURGED = {"user_id": PURGED}
# A command needs so long before it begins its work, more or less.
BEGINS_S = 3


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
    kill(ground, WORKER)
    yield


def _messages_of(path: Path, subject: str) -> list[Words]:
    with zipfile.ZipFile(path) as exported:
        lines = exported.read("data/drawers.jsonl").splitlines()
    return [Words(subject, json.loads(line)["text"]) for line in lines]


INTERRUPTED: dict[str, Fault] = {
    "purge interrupted": _purge,
    "dream interrupted": _dream,
    "restore interrupted": _restore,
}
