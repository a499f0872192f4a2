"""The systems compared: Loci in this process; peers in processes of their own, without network."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection

from bench.datasets import Case, Question
from bench.peers.adapters import peak_memory
from language.analyzer import ENGLISH, function_words
from language.transcripts import Transcript, Turn
from llm.embedding import deployment_model, model_build
from llm.onnx_runtime import available_cores
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


# A closed port: network access fails at once instead of waiting or sending data.
_NOWHERE = "http://127.0.0.1:9"


def install(peer: Peer) -> None:
    """Install the packages; skip a peer that is installed from the same lock.

    Raises:
        PeerFailed: no environment can be made, or a package cannot be had.
    """
    peer.home.parent.mkdir(parents=True, exist_ok=True)
    with (peer.home.parent / f".{peer.name}.lock").open("w") as turn:
        # A second process waits, and finds it installed.
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not peer.is_installed():
            _install(peer)


def _install(peer: Peer) -> None:
    # Run by an environment's own Python, this must still use the one below it.
    base = getattr(sys, "_base_executable", "") or sys.executable
    _run(peer, [base, "-m", "venv", "--clear", str(peer.home)])
    pip = [str(peer.python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    _run(peer, [*pip, "--no-deps", "--require-hashes", "-r", str(peer.lock)])
    peer.stamp.write_text(peer.digest())


def _run(peer: Peer, command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own commands, no shell.
        command, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise PeerFailed(
            f"{peer.title} cannot be installed: {said[-1].strip() if said else command[-1]}"
        )


class Outside:
    """Talks to a peer's adapter: one JSON object per line in each direction."""

    def __init__(self, title: str, process: subprocess.Popen[str], log: Path) -> None:
        self._title, self._process, self._log = title, process, log

    def take_in(self, case: Case) -> float:
        seconds = self._ask(do="open", person=case.id)["seconds"]
        for transcript in case.transcripts:
            messages = [_message(transcript, turn) for turn in transcript.turns]
            seconds += self._ask(do="add", messages=messages)["seconds"]
        return float(seconds)

    def ask(self, question: Question, top_k: int) -> Found:
        answer = self._ask(do="search", query=question.text, top_k=top_k)
        return Found(tuple(dict.fromkeys(answer["result"])), answer["seconds"])

    def weigh(self) -> Weight:
        answer = self._ask(do="weigh")
        return Weight(answer["disk_bytes"], answer["peak_rss_bytes"])

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None  # noqa: S101 - both pipes were asked for.
        assert self._process.stdout is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PeerFailed(f"{self._title} broke off: {_last_line(self._log)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def peer_process(peer: Peer) -> Iterator[Outside]:
    """Start an installed peer.

    Raises:
        PeerFailed: it is not installed, or it cannot run.
    """
    if not peer.is_installed():
        raise PeerFailed(f"{peer.title} is not installed; `manage.py bench_peers --install` does.")
    if not deployment_model().is_local:
        raise PeerFailed(
            f"{peer.title} can be given vectors of a local model only; "
            "unset LOCI_EMBEDDING_PROVIDER."
        )
    with process(peer.title, [str(peer.python), "-m", peer.adapter]) as outside:
        yield outside


@contextmanager
def process(title: str, command: Sequence[str]) -> Iterator[Outside]:
    """An adapter's process with temporary files."""
    with tempfile.TemporaryDirectory(prefix="loci-peer-") as folder:
        home, log = Path(folder), Path(folder) / "log"
        with log.open("w") as errors, _started(command, home, errors) as running:
            try:
                yield Outside(title, running, log)
            finally:
                _end(running)


def _started(command: Sequence[str], home: Path, errors: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own adapter, no shell.
        command,
        cwd=settings.BASE_DIR,
        env=_environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


def _end(running: subprocess.Popen[str]) -> None:
    """Close its input, which ends it; stop it if it hangs."""
    try:
        running.communicate(timeout=30)
    except (subprocess.TimeoutExpired, BrokenPipeError):
        running.kill()


def _environment(home: Path) -> dict[str, str]:
    """An environment without keys, accounts or hubs, with all files in the temporary folder."""
    model = model_build.ensure_built(settings.MODELS_DIR, deployment_model().name)
    store = home / "store"
    store.mkdir()
    return {
        "PATH": os.environ.get("PATH", ""),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # Otherwise older output may follow the error.
        "TOKENIZERS_PARALLELISM": "false",
        "PEER_FOLDER": str(store),
        "PEER_MODEL": str(model / model_build.MODEL_FILE),
        "PEER_TOKENIZER": str(model / model_build.TOKENIZER_FILE),
        "PEER_THREADS": str(available_cores()),
        "PEER_STOPWORDS": " ".join(sorted(function_words(ENGLISH))),
        "FASTEMBED_CACHE_PATH": str(home / "fastembed"),
        "HF_HUB_OFFLINE": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "MEM0_TELEMETRY": "False",
        "DO_NOT_TRACK": "1",
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _NOWHERE),
    }


def _message(transcript: Transcript, turn: Turn) -> dict[str, str]:
    """A message as users of these libraries pass it; `docs/peers.md` says why."""
    speaker = turn.speaker
    return {
        "key": f"{transcript.external_id}/{turn.external_id}",
        "session": transcript.external_id,
        "role": turn.role,
        "speaker": speaker,
        "text": f"{speaker}: {turn.text}" if speaker else turn.text,
        "said_at": turn.said_at.isoformat(),
    }


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing."
