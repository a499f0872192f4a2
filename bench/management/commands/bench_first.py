"""`manage.py bench_first`: how long from nothing to the first memory, beside other libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from bench.datasets import Case, Question
from bench.peers.systems import LOCI, PEERS, PeerFailed, peer_process
from bench.runs import UnrestrictedCommand
from language.transcripts import Transcript, Turn
from llm.embedding import deployment_model, model_build

SYSTEMS = (LOCI, "mem0", "mempalace")
SAID = "The tripod is in the blue cupboard of the harbour office."
ASKED = "Where is the tripod?"
FIRST = Case(
    "first",
    (Transcript("bench", "1", "", (Turn("1", "user", SAID, datetime(2024, 1, 1, tzinfo=UTC)),)),),
    (Question("1", "", ASKED, None, frozenset(), frozenset()),),
)
HEAD = ("system", "packages", "installed in", "first memory found after", "the second one after")


class Command(UnrestrictedCommand):
    help = (
        "For Loci, mem0 and MemPalace: install the locked packages into an empty environment, "
        "nothing cached; then, in an empty folder, start, keep a sentence and find it, twice. Each "
        "time is the shortest of some runs, as other work on the machine only adds to it. A table "
        "goes to standard error, one JSON line to standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-install", action="store_true", help="Use what an earlier run installed."
        )
        parser.add_argument("--runs", type=int, default=3, help="How often to time it (3).")

    def handle(self, *, no_install: bool, runs: int, **options: Any) -> None:
        if runs < 1:
            raise CommandError("--runs has to be 1 or more.")
        missing = [name for name in SYSTEMS if not (_home(name) / "bin" / "python").exists()]
        if no_install and missing:
            raise CommandError(f"Not installed: {', '.join(missing)}. Leave --no-install out.")
        model_build.ensure_built(settings.MODELS_DIR, deployment_model().name)
        figures = {}
        for name in SYSTEMS:
            try:
                installed_s = None if no_install else _timed(partial(_install, name))
                figures[name] = {"packages": _packages(name), "install_s": installed_s}
                figures[name] |= _shortest([_times_to_first_memory(name) for _ in range(runs)])
            except (PeerFailed, OSError, subprocess.CalledProcessError) as error:
                raise CommandError(f"{name}: {error}") from error
        self.stderr.write(table(figures))
        self.stdout.write(json.dumps(figures))


def table(figures: dict[str, Any]) -> str:
    rows = [HEAD, ("---",) * len(HEAD)]
    for name, of in figures.items():
        title = f"Loci {settings.VERSION}" if name == LOCI else PEERS[name].title
        times = (of["install_s"], of["first_s"], of["second_s"])
        shown = ["" if seconds is None else f"{seconds:.1f} s" for seconds in times]
        rows.append((title, str(of["packages"]), *shown))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _home(name: str) -> Path:
    return PEERS[name].home if name in PEERS else Path(settings.LOCI_HOME) / "peers" / name


def _lock(name: str) -> Path:
    return PEERS[name].lock if name in PEERS else settings.BASE_DIR / "requirements.lock"


def _install(name: str) -> None:
    base = getattr(sys, "_base_executable", "") or sys.executable
    home = _home(name)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    hashed = ["--no-input", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    _run([base, "-m", "venv", "--clear", str(home)])
    _run([*pip, *hashed, "-r", str(_lock(name))])
    if name in PEERS:
        PEERS[name].stamp.write_text(PEERS[name].digest())


def _packages(name: str) -> int:
    return len(list(_home(name).glob("lib/python*/site-packages/*.dist-info")))


def _shortest(times: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(each[key] for each in times) for key in times[0]}


def _times_to_first_memory(name: str) -> dict[str, float]:
    """Seconds from the start of a process to the sentence found: in an empty folder, and again."""
    if name in PEERS:
        # A process and a folder of its own each time.
        return {"first_s": _timed(partial(_peer_finds, name))} | {
            "second_s": _timed(partial(_peer_finds, name))
        }
    with _empty_home() as environment:
        return {
            "first_s": _timed(partial(_loci_finds, environment)),
            "second_s": _timed(partial(_loci_finds, environment)),
        }


def _peer_finds(name: str) -> None:
    with peer_process(PEERS[name]) as peer:
        peer.take_in(FIRST)
        if not peer.ask(FIRST.questions[0], 1).turns:
            raise PeerFailed("what was kept is not found.")


@contextmanager
def _empty_home() -> Iterator[dict[str, str]]:
    """Of a Loci that has nothing but the embedding model, as the others have it."""
    with tempfile.TemporaryDirectory(prefix="loci-first-") as folder:
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("LOCI_", "DATABASE_", "DJANGO_"))
        }
        yield kept | {"LOCI_HOME": folder, "LOCI_MODELS_DIR": str(settings.MODELS_DIR)}


def _loci_finds(environment: dict[str, str]) -> None:
    _run(_locipalace("add", SAID), environment)
    found = json.loads(_run(_locipalace("search", ASKED, "--json"), environment))
    if SAID not in [hit["text"] for hit in found["hits"]]:
        raise PeerFailed("what was kept is not found.")


def _locipalace(*words: str) -> list[str]:
    return [str(_home(LOCI) / "bin" / "python"), "-m", "locipalace", *words]


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    return subprocess.run(  # noqa: S603 - our own commands, no shell.
        command,
        env=environment,
        cwd=settings.BASE_DIR,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    ).stdout


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return round(time.perf_counter() - started, 1)
