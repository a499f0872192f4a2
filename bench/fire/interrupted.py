"""The faults that begin something long, and kill what does it while it is verifiably half done.

The database says how far it is. What is over before it could be killed was missed, and is no fault.
A dream and a restore are then begun again, as people are told to, and have to go through.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg

from bench.fire.faults import Fault, Ground, Missed, kill
from bench.fire.installation import (
    LONG,
    PHASES,
    WEB,
    Content,
    Installation,
    SecondHome,
    differing,
    wait_until,
)
from bench.fire.load import Client
from bench.fire.proof import FACTS, KEYED, Words, there_in
from bench.fire.surroundings import vectors_of
from bench.model_server import EMBEDDINGS, Json, Request, Slow

PURGED = "purged"
_PURGED = {"user_id": PURGED}
# Messages of which the purge takes a while; a transaction deletes up to 500.
TRASHED = 400
# Seconds: the most that is waited for work to begin, and how far into it the kill comes.
BEGUN_S, LATER_S = 60, 0.3
OTHER_DIMENSIONS = 64
# More than a batch of drawers takes.
MOST_REQUESTS = 50
# A purge has locked the drawers that it deletes.
_LEFT = """
SELECT count(*) AS trashed, count(*) - (
  SELECT count(*) FROM (
    SELECT FROM palace_drawer d JOIN palace_palace p ON p.id = d.palace_id
    WHERE p.subject = 'purged' AND d.trashed_at IS NOT NULL FOR KEY SHARE OF d SKIP LOCKED
  ) free
) AS locked
FROM palace_drawer d JOIN palace_palace p ON p.id = d.palace_id
WHERE p.subject = 'purged' AND d.trashed_at IS NOT NULL
"""
_HELD = """
EXISTS (
  SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
  AND (classid::bigint << 32 | objid::bigint) = hashtextextended('public ' || {}, 0)
)
"""
_DREAMS = f"""
SELECT FROM palace_palace p
WHERE p.subject = 'facts' AND {_HELD.format("'dream over palace ' || p.id")}
"""
_IMPORT = f"""
SELECT j.status IN ('ready', 'running'), {_HELD.format("'import ' || j.id")}
FROM palace_importjob j JOIN palace_palace p ON p.id = j.palace_id WHERE p.subject = %(subject)s
"""  # noqa: S608 - put together from constants.
_OTHER_VECTORS = """
SELECT count(*) FROM palace_passage v JOIN palace_embeddingspace s ON s.id = v.space_id
WHERE NOT s.active AND v.embedding IS NOT NULL
"""
_MINED = "SELECT count(DISTINCT palace_id) FROM palace_drawer WHERE mined_at IS NOT NULL"
_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextmanager
def _purge(ground: Ground) -> Iterator[bool]:
    """The web is killed while it empties a trash; the request is then repeated."""
    load, client = ground.load, ground.load.another_program()
    messages = [load.words(PURGED) for _ in range(TRASHED)]
    drawers = load.turn_until_accepted(client, *messages)
    if not _trash(ground, client, drawers):
        raise Missed("There was nothing in the trash.")
    load.ledger.deleting(messages)
    asking = threading.Thread(target=_empty, args=[client])
    asking.start()
    try:
        _await(lambda: _left(ground)[1] or not asking.is_alive(), "The purge did not begin.")
        time.sleep(ground.draw.uniform(0, LATER_S))
        if not _left(ground)[1]:
            raise Missed("The purge was over too soon.")
        kill(ground, WEB, whole=True)
        _await(lambda: not _left(ground)[1], "The killed purge holds its locks.")
        if not _left(ground)[0]:
            raise Missed("The purge was over when the web was killed.")
        yield True
    finally:
        asking.join()
        if load.insist(lambda: _empty(client), {200, 202}):
            load.ledger.deleted(messages)


def _left(ground: Ground) -> tuple[int, int]:
    """How many drawers are in the trash, and how many of these a purge has locked."""
    [(trashed, locked)] = _rows(ground, _LEFT) or [(0, 0)]
    return trashed, locked


def _trash(ground: Ground, client: Client, drawers: list[str]) -> bool:
    """Drawers that were moved to the trash by a request whose answer is lost stay there."""
    body = {"drawers": drawers}
    return bool(drawers) and ground.load.insist(
        lambda: client.ask("POST", "/v1/drawers/trash/", params=_PURGED, json=body), {200}
    )


def _empty(client: Client) -> httpx.Response | None:
    return client.ask("POST", "/v1/trash/empty/", params=_PURGED, json={})


@contextmanager
def _dream(ground: Ground) -> Iterator[bool]:
    """A dream over the facts is killed; the next night goes on."""
    words = ("dream", "--subject", FACTS)
    dreaming = ground.installation.command(*words, **_QUIET)
    _kill_amid(ground, dreaming, lambda: bool(_rows(ground, _DREAMS)))
    yield True
    code, said = ground.installation.run(*words)
    if code:
        ground.damaged.append(f"After a dream was killed, the next one failed: {said[-500:]}")


@contextmanager
def _import(ground: Ground) -> Iterator[bool]:
    """The worker is killed while it puts an exported palace back, into a new one."""
    load, client = ground.load, ground.load.another_program()
    exported = client.ask("GET", "/v1/export", params={"user_id": KEYED})
    if exported is None or exported.status_code != 200:
        raise Missed("There was no export.")
    subject = f"restored-{uuid4().hex[:8]}"
    path = ground.installation.home.parent / f"{subject}.zip"
    path.write_bytes(exported.content)
    words = ("import_chats", str(path), "--subject", subject, "--yes", "--background")
    begins = ground.installation.command(*words, **_QUIET)

    def state() -> tuple[bool, bool] | None:
        """Whether it is unfinished, and whether a worker has it; None before it is there."""
        return next(iter(_rows(ground, _IMPORT, {"subject": subject})), None)

    try:
        # A short one is over before the command is.
        _await(lambda: state() in {(True, True), (False, False)}, "No worker took it up.")
        time.sleep(ground.draw.uniform(0, LATER_S))
        if state() != (True, True):
            raise Missed("The import was over too soon.")
        kill(ground, LONG, whole=True)
        _await(lambda: state() in {(True, False), (False, False)}, "It holds its lock.")
        if state() != (True, False):
            raise Missed("The import was over when the worker was killed.")
    finally:
        if not begins.wait():
            load.ledger.accept_all(_messages_of(path, subject))
    yield True


def _messages_of(path: Path, subject: str) -> list[Words]:
    with zipfile.ZipFile(path) as exported:
        lines = exported.read("data/drawers.jsonl").splitlines()
    return [Words(subject, json.loads(line)["text"]) for line in lines]


@contextmanager
def _reembed(ground: Ground) -> Iterator[bool]:
    """A change of the embedding model is killed when a part of the vectors is there."""
    _await(lambda: _count(ground, _MINED) > 1, "No two palaces were mined.")
    before, waits = _count(ground, _OTHER_VECTORS), threading.Event()
    vectors = vectors_of(OTHER_DIMENSIONS)

    def answer(request: Request) -> Json | Slow:
        """Once a batch is stored, which may take several requests, the next one waits."""
        if _count(ground, _OTHER_VECTORS) == before:
            return vectors(request)
        waits.set()
        return Slow(60)

    ground.model.script([answer] * MOST_REQUESTS, path=EMBEDDINGS)
    other = {
        "LOCI_EMBEDDING_PROVIDER": ground.model.base_url,
        "LOCI_EMBEDDING_MODEL": "scripted",
        "LOCI_EMBEDDING_DIMENSIONS": str(OTHER_DIMENSIONS),
    }
    building = ground.installation.command("reembed", environment=other, **_QUIET)
    try:
        _kill_amid(ground, building, waits.is_set)
    finally:
        ground.model.recover(EMBEDDINGS)
    yield True


def _kill_amid(
    ground: Ground, command: subprocess.Popen[bytes], is_under_way: Callable[[], bool]
) -> None:
    """Kill a command at some moment of its work.

    Raises:
        Missed: It was not at work.
    """
    try:
        wait_until(lambda: is_under_way() or command.poll() is not None, BEGUN_S, every_s=0.02)
        time.sleep(ground.draw.uniform(0, LATER_S))
        was_under_way = is_under_way()
    finally:
        command.kill()
        ended = command.wait()
    if ended != -signal.SIGKILL:
        raise Missed(f"The command ended by itself, with {ended}.")
    if not was_under_way:
        raise Missed("The command was not at work.")


def _await(condition: Callable[[], object], why_missed: str) -> None:
    if not wait_until(condition, BEGUN_S, every_s=0.02):
        raise Missed(why_missed)


def _rows(
    ground: Ground, statement: str, parameters: dict[str, object] | None = None
) -> list[tuple[Any, ...]]:
    """None of them while the database is away."""
    with contextlib.suppress(psycopg.Error):
        return ground.installation.rows(statement, parameters)
    return []


def _count(ground: Ground, statement: str) -> int:
    [(count,)] = _rows(ground, statement) or [(0,)]
    return int(count)


@contextmanager
def _restore(ground: Ground) -> Iterator[bool]:
    """`manage.py restore` is killed while it puts one backup in the place of another, and then run
    again. In a second home: Loci itself would have to stop."""
    draw, loci = ground.draw, ground.installation
    with tempfile.TemporaryDirectory(prefix="loci-second-", dir="/tmp") as name:
        folder = Path(name)
        second = SecondHome(loci.beside(folder))
        earlier, later = folder / "earlier", folder / "later"
        _back_up(loci, earlier)
        # Without what was accepted for an import, and is still to be filed.
        kept = ground.load.ledger.accepted() & there_in(loci).keys()
        _back_up(loci, later)
        new, old = _restored(second, later), _restored(second, earlier)
        phase, alone = draw.choice(PHASES), draw.choice((True, False))
        if not second.is_killed(later, phase, alone=alone):
            raise Missed(f"The restore was not killed amid its {phase}.")
        yield True
        half = second.content()
        if half not in (old, new):
            left = differing(half, new)
            ground.damaged.append(f"A restore killed amid its {phase} left neither state: {left}")
        ground.damaged.extend(_wrong_in_the_end(second, later, new, kept))


def _back_up(loci: Installation, file: Path) -> None:
    code, said = loci.run("backup", str(file))
    if code:
        raise Missed(f"There was no backup: {said[-500:]}")


def _restored(second: SecondHome, backup: Path) -> Content:
    if wrong := second.restore(backup):
        raise Missed(f"A backup could not be restored: {wrong}")
    return second.content()


def _wrong_in_the_end(
    second: SecondHome, backup: Path, new: Content, kept: set[Words]
) -> Iterator[str]:
    """What is wrong once the restore was run again, in sentences."""
    if said := second.restore(backup):
        yield f"After a restore was killed, the next one failed: {said}"
    code, said = second.loci.run("audit", "--all")
    if code:
        yield f"After a restore was killed and run again, the audit failed: {said[-500:]}"
    if (content := second.content()) != new:
        yield f"A restore that was killed and run again differs: {differing(content, new)}"
    with second.loci.layout.services():
        there = there_in(second.loci)
    if wrong := sorted(words for words in kept if there[words] != 1):
        yield f"Not once in a backup, of what was there before: {len(wrong)}, first {wrong[0]}"


INTERRUPTED: dict[str, Fault] = {
    "purge interrupted": _purge,
    "dream interrupted": _dream,
    "import of an export interrupted": _import,
    "reembed interrupted": _reembed,
    "restore of a backup interrupted": _restore,
}
