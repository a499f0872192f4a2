"""`manage.py load`: what Loci does below and above what its machine can do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

import bench
from bench.fire import key_of, surroundings
from bench.fire.installation import (
    CLOCK,
    LONG,
    POSTGRES,
    REDIS,
    WEB,
    WORKER,
    Installation,
    NotStarted,
    wait_until,
)
from bench.fire.load import TOKEN, person, program
from bench.logs import Log, commit_of
from bench.metrics import percentile
from bench.model_server import ModelServer


class Command(BaseCommand):
    requires_system_checks = ()
    help = (
        "Start a Loci in a folder of its own, find out how many mixed requests a second it can "
        "answer, then send 80 % and 200 % of that. One JSON line on standard output, which the "
        "log keeps. `make load` installs the load tool first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--minutes", type=float, default=2, help="Of both loads together (2).")
        parser.add_argument("--locust", type=Path, help="Unless given, that of `make load`.")
        parser.add_argument("--log", type=Path, help="Unless given, data/load/runs.jsonl.")
        parser.add_argument("--keep", action="store_true", help="Keep what Loci printed.")

    def handle(self, **options: Any) -> None:
        if not options["minutes"] > 0:
            raise CommandError("--minutes is a number above 0.")
        locust = options["locust"] or settings.BASE_DIR / ".loci" / "load" / "bin" / "locust"
        if not locust.is_file():
            raise CommandError(f"There is no {locust}. `make load` installs it.")
        # Not in TMPDIR: a socket's path has to be short.
        folder = Path(tempfile.mkdtemp(prefix="loci-load-", dir="/tmp"))
        try:
            record = load(folder, locust, minutes=options["minutes"], say=self._say)
        except (NotStarted, subprocess.CalledProcessError) as error:
            raise CommandError(f"{error} What was printed: {_end_of(folder)}") from error
        finally:
            if options["keep"]:
                self._say(f"What Loci printed and kept is in {folder}.")
            else:
                shutil.rmtree(folder, ignore_errors=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        made_by = {"version": settings.VERSION, "commit": commit_of(settings.BASE_DIR)}
        line = {"at": at, **made_by, "minutes": options["minutes"], **record}
        Log(options["log"] or settings.BASE_DIR / "data" / "load" / "runs.jsonl").append(line)
        self.stdout.write(json.dumps(line))

    def _say(self, line: str) -> None:
        self.stderr.write(line, style_func=str)


def _end_of(folder: Path) -> str:
    log = folder / "locust.log"
    return log.read_text(errors="replace")[-1500:] if log.exists() else "nothing."


TRAFFIC = Path(bench.__file__).parent / "load_traffic.py"
PALACES, MESSAGES = 10, 40
# Of users: as many as keep the machine busy, and enough to go on asking when it is too busy.
BUSY_USERS, PACED_USERS = 12, 150
# Files of six conversations.
IMPORTS_PER_S, FILLING_PER_S, FILLED_S = 0.1, 1.25, 20
# A sample looks at all pages of memory, during which a program cannot have any.
SAMPLE_EVERY_S = 10.0
TIMEOUT_S = 60
DRAINED_S = 600
MEASURED = (WEB, WORKER, LONG, CLOCK, REDIS, POSTGRES)
RECALL, PAGES = "recall", "pages"
# Messages to mine or to read for facts, conversations to summarise, and imports.
_WAITING = """
SELECT (SELECT count(*) FROM palace_drawer WHERE mined_at IS NULL OR facts_read_at IS NULL)
     + (SELECT count(*) FROM palace_room WHERE episode_due_at IS NOT NULL)
     + (SELECT count(*) FROM palace_importjob WHERE status = 'running')
"""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Attributes:
        at: Seconds since the phase began.
        status: 0 where none came.
        says_when: Whether Retry-After was sent.
    """

    kind: str
    at: float
    ms: float
    status: int
    says_when: bool


@dataclass(slots=True)
class Memory:
    """Megabytes of each program, all its processes together, sampled over the run.

    Attributes:
        series: One entry a minute: the web's megabytes beside the messages it keeps an index of.
    """

    installation: Installation
    samples: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    series: list[dict[str, int]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def sampled(self) -> Iterator[None]:
        thread = threading.Thread(target=self._sample, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _sample(self) -> None:
        began = time.monotonic()
        while not self._over.wait(SAMPLE_EVERY_S):
            for name in MEASURED:
                self.samples[name].append(_megabytes(self.installation.processes(name)))
            if (minute := int((time.monotonic() - began) / 60)) >= len(self.series):
                [(drawers,)] = self.installation.rows("SELECT count(*) FROM palace_drawer")
                self.note(minute, drawers)

    def note(self, minute: int, drawers: int) -> None:
        """Add the web's latest sample to the series."""
        web_mb = round(self.samples[WEB][-1])
        self.series.append({"minute": minute, "web_mb": web_mb, "drawers": drawers})

    def growth(self) -> dict[str, dict[str, float]]:
        """Of each: the median of the second quarter of the samples, and of the last."""
        grown = {}
        for name, samples in self.samples.items():
            quarter = max(len(samples) // 4, 1)
            second, last = samples[quarter : 2 * quarter] or samples, samples[-quarter:]
            before, after = percentile(second, 0.5), percentile(last, 0.5)
            grown[name] = {
                "early_mb": round(before),
                "late_mb": round(after),
                "times": round(after / max(before, 1), 2),
            }
        return grown


def _megabytes(processes: Sequence[psutil.Process]) -> float:
    """Without what they share, so that a page of memory counts once."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_full_info().uss
    return total / 1e6


def load(folder: Path, locust: Path, *, minutes: float, say: Say) -> dict[str, Any]:
    """
    Args:
        folder: An empty one for the installation.
        locust: The program.
        minutes: How long each of both loads lasts, half of it below what is possible.

    Raises:
        NotStarted: Loci does not start or stop.
    """
    with ModelServer() as model:
        surroundings.recover(model)
        installation = Installation(folder / "home", _settings(model), folder / "run.log")
        try:
            link = installation.start()
            traffic = _Traffic(installation, folder, locust, link)
            record = _measure(traffic, minutes * 60, say)
            installation.stop()
        finally:
            installation.kill()
    return record


def _measure(traffic: _Traffic, seconds: float, say: Say) -> dict[str, Any]:
    say("Importing what the pages show ...")
    # The plan of a palace costs more the more rooms it has, up to the most that it draws.
    traffic.run(rate=0, users=0, seconds=FILLED_S, imports_per_s=FILLING_PER_S)
    traffic.drained_in()
    say("Finding out how much is possible ...")
    possible_s = max(20, min(seconds / 4, 60))
    found = traffic.run(rate=0, users=BUSY_USERS, seconds=possible_s)
    # What is put off meanwhile is work as well.
    put_off_s = traffic.drained_in()
    took_s = possible_s + (DRAINED_S if put_off_s is None else put_off_s)
    possible = sum(answer.status in range(200, 400) for answer in found) / took_s
    record: dict[str, Any] = {"possible_per_s": round(possible, 1), "alone": figures(found)}
    memory = Memory(traffic.installation)
    with memory.sampled():
        for share in (80, 200):
            rate = possible * share / 100
            say(f"{share} %: {rate:.1f} requests a second for {seconds / 2:.0f} s ...")
            answers = traffic.run(rate=rate, users=PACED_USERS, seconds=seconds / 2)
            record[f"at_{share}"] = {"per_s": round(rate, 1), **figures(answers)}
            record[f"at_{share}"]["drained_s"] = traffic.drained_in()
    return record | {"memory": memory.growth(), "web_by_minute": memory.series}


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """By kind of request; recall's last percent against its median; and refusals without a time."""
    kinds: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        kinds[answer.kind].append(answer)
    by_kind = {kind: _of_kind(found) for kind, found in sorted(kinds.items())}
    recall = by_kind.get(RECALL, {})
    ratio = recall["p99_ms"] / recall["p50_ms"] if recall.get("p50_ms") else None
    refused = [answer for answer in answers if answer.status in (429, 503)]
    return {
        "kinds": by_kind,
        "recall_p99_to_p50": None if ratio is None else round(ratio, 1),
        "refused": len(refused),
        "refused_without_retry_after": sum(not answer.says_when for answer in refused),
        "failed": sum(answer.status in (0, 500, 502, 504) for answer in answers),
        "recall_by_minute": _by_minute(kinds[RECALL]),
    }


def _by_minute(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Tells a slow minute from a slow hour: with each one the palaces have more messages."""
    minutes: defaultdict[int, list[Answer]] = defaultdict(list)
    for answer in answers:
        minutes[int(answer.at / 60)].append(answer)
    return [{"minute": minute, **_of_kind(minutes[minute])} for minute in sorted(minutes)]


def _of_kind(answers: Sequence[Answer]) -> dict[str, Any]:
    good = [answer.ms for answer in answers if answer.status in range(200, 400)]
    statuses = Counter(str(answer.status) for answer in answers)
    times = {f"p{share}_ms": _at(good, share) for share in (50, 95, 99)}
    return {"answers": dict(sorted(statuses.items())), **times}


def _at(times: Sequence[float], share: int) -> float | None:
    return round(percentile(times, share / 100), 1) if times else None


def _settings(model: ModelServer) -> dict[str, str]:
    return {
        "LOCI_LLM_PROVIDER": model.base_url,
        "LOCI_LLM_MODEL": "scripted",
        "LOCI_LLM_API_KEY": "none",
        # What the machine can do is the limit, not what a key may.
        "LOCI_API_RATE": "",
        "LOCI_MINE_AFTER_S": "2",
    }


class _Traffic:
    def __init__(self, installation: Installation, folder: Path, locust: Path, link: str) -> None:
        self.installation, self._folder, self._locust = installation, folder, locust
        self._key = key_of(installation)
        self._phase = 0
        with closing(person(installation.address, link).client) as signed_in:
            # A later one of the same name is the one that counts.
            jar = {cookie.name: cookie.value for cookie in signed_in.cookies.jar}
        self._cookies = "; ".join(f"{name}={value}" for name, value in jar.items())
        self._furnish()

    def _furnish(self) -> None:
        """Something to find in each palace."""
        with closing(program(self.installation.address, self._key).client) as client:
            for palace in range(PALACES):
                messages = [
                    {"role": "user", "content": f"On day {number} the ferry left at {number}."}
                    for number in range(MESSAGES)
                ]
                said = {"user_id": f"load-{palace}", "session_id": "1", "messages": messages}
                client.post("/turns", json=said).raise_for_status()

    def run(
        self, *, rate: float, users: int, seconds: float, imports_per_s: float = IMPORTS_PER_S
    ) -> list[Answer]:
        """
        Args:
            rate: Requests a second of all users together; 0: without a pause.
            users: Besides the one who imports.
        """
        self._phase += 1
        answers = self._folder / f"answers-{self._phase}.jsonl"
        settings = {
            "address": self.installation.address,
            "key": self._key,
            "cookies": self._cookies,
            "csrf": TOKEN,
            "rate": rate,
            "users": max(users, 1),
            "imports_per_s": imports_per_s,
            "palaces": PALACES,
            "timeout_s": TIMEOUT_S,
            "answers": str(answers),
        }
        path = self._folder / "settings.json"
        path.write_text(json.dumps(settings))
        self._run_locust(path, users, seconds)
        with answers.open() as lines:
            return [Answer(*json.loads(line)) for line in lines]

    def _run_locust(self, settings: Path, users: int, seconds: float) -> None:
        words = [str(self._locust), "--locustfile", str(TRAFFIC), "--headless", "--only-summary"]
        # One user more, who imports.
        words += ["--users", str(users + 1), "--spawn-rate", str(users + 1)]
        words += [
            "--run-time",
            f"{seconds:.0f}s",
            "--stop-timeout",
            "0",
            "--exit-code-on-error",
            "0",
        ]
        environment = {**os.environ, "LOAD_SETTINGS": str(settings)}
        with (self._folder / "locust.log").open("ab") as log:
            subprocess.run(words, env=environment, stdout=log, stderr=log, check=True)  # noqa: S603

    def drained_in(self) -> float | None:
        """Seconds until all that was put off is done; None if it takes too long."""
        began = time.monotonic()
        done = wait_until(lambda: self._is_zero(_WAITING), DRAINED_S, every_s=0.5)
        return round(time.monotonic() - began, 1) if done else None

    def _is_zero(self, statement: str) -> bool:
        return self.installation.rows(statement) == [(0,)]
