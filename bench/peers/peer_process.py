"""A peer in a process of its own: installed from a lock with hashes into an environment of its own,
with nothing of ours in it and no network.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from bench.datasets.base import Case, Question
from bench.peers.systems import Found, Peer, PeerFailed, Weight
from language.detection import ENGLISH, function_words
from language.transcripts import Transcript, Turn
from llm.embedding import build, deployment_model
from llm.onnx_runtime import available_cores

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
    model = build.ensure_built(settings.MODELS_DIR, deployment_model().name)
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
        "PEER_MODEL": str(model / build.MODEL_FILE),
        "PEER_TOKENIZER": str(model / build.TOKENIZER_FILE),
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
