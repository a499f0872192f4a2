"""The systems compared: which there are, where each is installed, and what each must do.

Loci is one of them: production mining and recall, in this process.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection

from bench.datasets.base import Case, Question
from bench.peers.adapters.stream import peak_memory
from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine_many
from palace.models import Palace
from palace.recall import RecallRequest, recall
from settings_app.models import MemorySettings

_SAID = Turn("1", "user", "Nothing of note was said.", datetime(2024, 1, 1, tzinfo=UTC))
# Ingested and asked before the measurement, so that one-time costs, such as loading the model, do
# not count.
WARM_UP = Case(
    "warm-up",
    (Transcript("bench", "1", "", (_SAID,)),),
    (Question("1", "", "What was said?", None, frozenset(), frozenset()),),
)

LOCI = "loci"
LOCKS = Path(__file__).parent / "locks"


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        turns: Messages as `conversation/message`, best first, none twice.
    """

    turns: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Weight:
    """
    Attributes:
        disk: Bytes of what is kept of the person taken in last, texts and indexes.
        memory: The greatest number of bytes the process held so far.
        database: Bytes a server beside it holds now; 0 where there is none.
    """

    disk: int
    memory: int
    database: int = 0


class System(Protocol):
    def take_in(self, case: Case) -> float:
        """Ingest a person's conversations; return the seconds it took."""
        ...

    def ask(self, question: Question, top_k: int) -> Found:
        """Ask about the person ingested last."""
        ...

    def weigh(self) -> Weight: ...


class PeerFailed(Exception):
    """A system cannot be measured; the message says why. The others can."""


@dataclass(frozen=True, slots=True)
class Peer:
    """
    Attributes:
        title: As its makers write it.
        package: Whose version is reported.
        how: Which of its calls are made, for the table.
    """

    name: str
    title: str
    package: str
    how: str

    @property
    def adapter(self) -> str:
        """The adapter's module, run by the peer's own Python."""
        return f"bench.peers.adapters.{self.name}"

    @property
    def lock(self) -> Path:
        """Its packages with their hashes."""
        return LOCKS / f"{self.name}.lock"

    @property
    def home(self) -> Path:
        """Its virtual environment."""
        return Path(settings.LOCI_HOME) / "peers" / self.name

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """A file that names the installed lock, written last."""
        return self.home / ".loci-peer"

    def digest(self) -> str:
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

    def is_installed(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.digest()

    def version(self) -> str:
        """The locked version of its package."""
        lines = self.lock.read_text().splitlines()
        [line] = [line for line in lines if line.startswith(f"{self.package}==")]
        return line.split("==")[1].split()[0]


PEERS = {
    peer.name: peer
    for peer in (
        Peer("chroma", "Chroma", "chromadb", "one document a message, dense"),
        Peer("mempalace", "MemPalace", "mempalace", "a drawer a message (sweep), search_memories"),
        Peer("mem0", "mem0", "mem0ai", "infer=False, local Qdrant with BM25"),
    )
}
SYSTEMS = (LOCI, *PEERS)


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
