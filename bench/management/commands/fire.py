"""`manage.py fire`: break a running Loci on purpose, and prove that nothing is lost."""

from __future__ import annotations

import json
import shutil
import tempfile
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bench.fire import EVERYTHING, fire
from bench.fire.installation import NotStarted
from bench.logs import Log, commit_of
from bench.metrics import percentile

WRONG = (
    "lost",
    "doubled",
    "returned",
    "events_lost",
    "events_doubled",
    "audit_failed",
    "damaged",
    "never_hit",
    "never_finished",
    "refused",
)


_TIMES = ("readers_s", "unfinished_s")


class Command(BaseCommand):
    requires_system_checks = ()
    help = (
        "Start a Loci in a folder of its own, and under mixed load kill, stop and hinder its "
        "programs, disk and model at random moments. Then hold what is there to what was "
        "acknowledged, and audit it. One JSON line on standard output, which the log keeps. The "
        "exit code is 1 if anything is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--seed", type=int, help="Decides what happens; unless given, the time."
        )
        parser.add_argument(
            "--faults", type=int, help="How many; unless given, one of each kind that can be done."
        )
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            choices=sorted(EVERYTHING),
            metavar="FAULT",
            help="Only this fault; may be given several times.",
        )
        parser.add_argument(
            "--before",
            type=Path,
            help="Folder of an older version: its worker and its web run beside.",
        )
        parser.add_argument("--log", type=Path, help="Unless given, bench/fire/runs.jsonl.")
        parser.add_argument("--summary", action="store_true", help="Only sum up the log.")
        parser.add_argument("--since", help="Of the log, only runs from that moment on (ISO 8601).")
        parser.add_argument("--keep", action="store_true", help="Keep what Loci printed.")

    def handle(self, **options: Any) -> None:
        log = Log(options["log"] or settings.BASE_DIR / "bench" / "fire" / "runs.jsonl")
        if options["summary"]:
            since = options["since"] or ""
            runs = [run for run in log.lines() if run["at"] >= since]
            self.stdout.write(json.dumps(summary(runs)))
            return
        if options["faults"] is not None and options["faults"] < 1:
            raise CommandError("--faults is a number of faults, at least 1.")
        if options["before"] and not (options["before"] / "manage.py").is_file():
            raise CommandError(f"--before: {options['before']} has no manage.py.")
        seed = int(datetime.now(UTC).timestamp()) if options["seed"] is None else options["seed"]
        # Not in TMPDIR: a socket's path has to be short.
        folder = Path(tempfile.mkdtemp(prefix="loci-fire-", dir="/tmp"))
        try:
            ended = fire(
                folder,
                seed=seed,
                faults=options["faults"],
                say=self._say,
                before=options["before"],
                only=options["only"],
            )
        except NotStarted as error:
            raise CommandError(str(error)) from error
        finally:
            if options["keep"]:
                self._say(f"What Loci printed and kept is in {folder}.")
            else:
                shutil.rmtree(folder, ignore_errors=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        made_by = {"version": settings.VERSION, "commit": commit_of(settings.BASE_DIR)}
        record = {"at": at, **made_by, **ended.record}
        log.append(record)
        for finding in ended.findings:
            self._say(finding)
        self.stdout.write(json.dumps(record))
        if any(record[name] for name in WRONG):
            raise SystemExit(1)

    def _say(self, line: str) -> None:
        self.stderr.write(line, style_func=str)


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of all logged runs; of the kinds that whose unfinished work took longest is first."""
    injected = [fault for run in runs for fault in run["injected"]]
    figures: dict[str, Any] = {"runs": len(runs), "faults": len(injected)}
    for name in (*WRONG, "missed", "accepted", "deleted", "events_arrived"):
        figures[name] = sum(run.get(name, 0) for run in runs)
    figures["under_way"] = _hits(injected)
    for name in _TIMES:
        figures |= {
            f"{name.removesuffix('_s')}_p{share}_s": _share(injected, name, share / 100)
            for share in (50, 95)
        }
    kinds: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for fault in injected:
        kinds[fault["fault"]].append(fault)
    rows = {kind: _kind(faults) for kind, faults in sorted(kinds.items())}
    slowest = sorted(rows, key=lambda kind: rows[kind]["unfinished_p95_s"] or 0, reverse=True)
    figures["kinds"] = {kind: rows[kind] for kind in slowest}
    return figures


def _kind(faults: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    last = Counter(fault["slowest"] for fault in faults if fault.get("slowest"))
    return {
        "faults": len(faults),
        "under_way": _hits(faults),
        "readers_s": _share(faults, "readers_s", 1),
        "unfinished_p50_s": _share(faults, "unfinished_s", 0.5),
        "unfinished_p95_s": _share(faults, "unfinished_s", 0.95),
        "unfinished_s": _share(faults, "unfinished_s", 1),
        "done_last": dict(last.most_common()),
    }


def _hits(faults: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many of those of which it is known hit running work."""
    known = [fault["under_way"] for fault in faults if fault.get("under_way") is not None]
    return {"of": len(known), "hit": sum(known)}


def _share(faults: Sequence[Mapping[str, Any]], name: str, share: float) -> float | None:
    """The seconds within which so many had recovered; of those that had."""
    times = [fault[name] for fault in faults if fault[name] is not None]
    return percentile(times, share) if times else None
