"""The systems compared: which there are, where each is installed, and what each must do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from django.conf import settings

from bench.datasets.base import Case, Question
from language.transcripts import Transcript, Turn

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
