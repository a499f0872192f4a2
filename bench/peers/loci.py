"""Loci as one of the systems compared: production mining and recall, in this process."""

from __future__ import annotations

import time
from pathlib import Path

from django.contrib.auth import get_user_model
from django.db import connection

from bench.datasets.base import Case, Question
from bench.peers.adapters.stream import peak_memory
from bench.peers.systems import Found, Weight
from palace.models import Palace
from palace.pipeline import mine_many
from palace.recall import RecallRequest, recall
from settings_app.models import MemorySettings


class Inside:
    """Use it within a separate database schema."""

    def __init__(self, recipe: str = "default") -> None:
        self._recipe = recipe
        self._owner = get_user_model().objects.create(username="bench")
        # Without a language model, like the others, whatever the operator configured.
        MemorySettings.objects.create(owner=self._owner, provider=MemorySettings.NO_MODEL)
        self._before = self._after = 0
        self._palace = Palace.objects.own(self._owner)

    def take_in(self, case: Case) -> float:
        self._before = _schema_bytes()
        started = time.perf_counter()
        self._palace = Palace.objects.create(owner=self._owner, subject=case.id)
        mine_many(self._palace, case.transcripts)
        seconds = time.perf_counter() - started
        self._after = _schema_bytes()
        return seconds

    def ask(self, question: Question, top_k: int) -> Found:
        started = time.perf_counter()
        found = recall(
            self._palace,
            RecallRequest(
                question.text, top_k=top_k, now=question.now, recipe=self._recipe, rerank=False
            ),
        )
        seconds = time.perf_counter() - started
        drawers = (hit.drawer for hit in found.hits)
        turns = tuple(f"{drawer.conversation}/{drawer.external_id}" for drawer in drawers)
        return Found(turns, seconds)

    def weigh(self) -> Weight:
        return Weight(self._after - self._before, peak_memory(), _server_bytes())


def _schema_bytes() -> int:
    """The size of all tables of the current schema with indexes, except recall traces."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c"
            " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace"
            " AND c.relname NOT LIKE '%trace%'"
        )
        [size] = cursor.fetchone()
    return int(size)


def _server_bytes() -> int:
    """Memory of the database server's processes, shared pages once; 0 on another machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [backend] = cursor.fetchone()
    try:
        # A local address may belong to a container, whose processes are not visible here.
        if Path(f"/proc/{backend}/comm").read_text().strip() != "postgres":
            return 0
        server = _parent(backend)
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        return sum(_share(pid) for pid in pids if pid == server or _parent(pid) == server)
    except OSError:
        return 0


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # It has just ended.
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def _share(pid: int) -> int:
    """Its proportional set size: shared pages divided by their users."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
