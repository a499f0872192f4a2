"""Which peers there are, and where each is installed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

LOCI = "loci"
LOCKS = Path(__file__).parent / "locks"


@dataclass(frozen=True, slots=True)
class Peer:
    """
    Attributes:
        title: As its makers write it.
        package: Whose version is told.
        how: Which of its calls are made, for the table.
    """

    name: str
    title: str
    package: str
    how: str

    @property
    def adapter(self) -> str:
        """The module that speaks for it, run by its own Python."""
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
        """Says which lock was installed, written last."""
        return self.home / ".loci-peer"

    def digest(self) -> str:
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

    def is_installed(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.digest()

    def version(self) -> str:
        """Of its package, as locked."""
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
