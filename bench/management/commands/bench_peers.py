"""`manage.py bench_peers`: the same questions through Loci and through other libraries."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from bench.datasets import BadData, Case, Dataset, Question, longmemeval
from bench.datasets.long_chats import load_beam, load_locomo
from bench.logs import sha256_of
from bench.metrics import retrieval_report, spread_of
from bench.peers.systems import (
    LOCI,
    PEERS,
    SYSTEMS,
    WARM_UP,
    Found,
    Inside,
    PeerFailed,
    System,
    Weight,
    peer_process,
)
from bench.peers.systems import install as install_peer
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from llm.embedding import deployment_model

Loader = Callable[[Path], Dataset]
SCHEMA = "bench_peers"
LOADERS: dict[str, Loader] = {
    "locomo": load_locomo,
    "longmemeval": longmemeval.load,
    "beam": load_beam,
}
# Sessions take the place of their best message, so more of these than the deepest cut are needed.
TOP_K = 100
# What a person or an agent asks for; only the times differ.
FEW = 10

# The figures each data set is known by; the JSON line has the others too.
SHOWN = {
    "locomo": ("session_recall@10", "turn_recall@10"),
    "longmemeval": ("session_recall_any@5", "session_recall_all@5"),
    "beam": ("turn_recall@10", "turn_recall@20"),
}


class Command(UnrestrictedCommand):
    help = (
        "Ask Loci, Chroma, MemPalace and mem0 the same questions, one system after the other, all "
        "with the same embedding model. A table goes to standard error, one JSON line to standard "
        "output. docs/peers.md says how each is used."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--install",
            action="store_true",
            help="First install the peers, each in an environment of its own below LOCI_HOME.",
        )
        parser.add_argument("--data", type=Path, help="The data set's file or folder.")
        parser.add_argument("--dataset", choices=LOADERS, help="What the data are.")
        parser.add_argument("--limit", type=int, help="Only the first so many cases.")
        parser.add_argument(
            "--systems",
            default=",".join(SYSTEMS),
            help=f"Which, with commas between: {', '.join(SYSTEMS)}.",
        )

    def handle(
        self,
        *,
        install: bool,
        data: Path | None,
        dataset: str | None,
        limit: int | None,
        systems: str,
        **options: Any,
    ) -> None:
        names = _named(systems)
        failed = self._install(names) if install else {}
        if data is None or dataset is None:
            if not install or data or dataset:
                raise CommandError("Give both --data and --dataset, or --install alone.")
            if failed:
                raise CommandError(" ".join(failed.values()))
            return
        if limit is not None and limit < 1:
            raise CommandError("--limit is a number from 1.")
        try:
            read = LOADERS[dataset](data)
            cases = list(islice(read.cases, limit))
        except BadData as error:
            raise CommandError(str(error)) from None
        reports = self._measure(names, cases, failed)
        if not reports:
            raise CommandError(" ".join(failed.values()))
        self.stderr.write(table(dataset, {r["title"]: r for r in reports.values()}))
        head = {
            "dataset": dataset,
            "sha256": sha256_of(data),
            "embedding": deployment_model().name,
            "skipped": dict(read.skipped),
        }
        self.stdout.write(json.dumps({**head, "systems": reports, "failed": failed}))

    def _install(self, names: list[str]) -> dict[str, str]:
        """Why those failed that did, by name."""
        failed = {}
        for peer in [PEERS[name] for name in names if name != LOCI]:
            done = "is installed" if peer.is_installed() else "is being installed"
            self.stderr.write(f"{peer.title} {peer.version()} {done}.")
            try:
                install_peer(peer)
            except PeerFailed as error:
                self.stderr.write(str(error))
                failed[peer.name] = str(error)
        return failed

    def _measure(
        self, names: list[str], cases: list[Case], failed: dict[str, str]
    ) -> dict[str, Any]:
        """Reports by name; what fails is added to `failed`, and the next one has its turn."""
        reports: dict[str, Any] = {}
        for name in names:
            if name in failed:
                continue
            sheet = Sheet()
            try:
                with _opened(name) as system:
                    sheet.measure(system, tqdm(cases, desc=name, unit="case", disable=None))
            except PeerFailed as error:
                self.stderr.write(str(error))
                failed[name] = str(error)
            else:
                reports[name] = {"title": _title(name), **sheet.report()}
        return reports


def _named(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown or not names:
        raise CommandError(
            f"{', '.join(unknown) or 'Nothing'} is no system that can be compared; "
            f"there are {', '.join(SYSTEMS)}."
        )
    return names


def _title(name: str) -> str:
    if name == LOCI:
        return f"Loci {settings.VERSION}"
    return f"{PEERS[name].title} {PEERS[name].version()}"


@contextmanager
def _opened(name: str) -> Iterator[System]:
    """The system, warm and empty; nothing of it is left afterwards."""
    if name != LOCI:
        with peer_process(PEERS[name]) as peer:
            yield peer
    else:
        # Left by a run that was killed, it would hold that one's people still.
        with alone_in(SCHEMA):
            drop_schema(SCHEMA)
            with own_schema(SCHEMA, keep=False):
                yield Inside()


@dataclass(slots=True)
class Sheet:
    """
    Attributes:
        lines: One a question, in the form of a retrieval log.
        few_ms: Latencies of the same questions asked once more, for ten hits.
        disk: Bytes that all people's memories took, each weighed before it was asked.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    few_ms: list[float] = field(default_factory=list)
    messages: int = 0
    ingest_s: float = 0.0
    disk: int = 0
    weight: Weight = field(default_factory=lambda: Weight(0, 0))

    def measure(self, system: System, cases: Iterable[Case]) -> None:
        system.take_in(WARM_UP)
        system.ask(WARM_UP.questions[0], TOP_K)
        for case in cases:
            self.ingest_s += system.take_in(case)
            self.messages += sum(len(transcript.turns) for transcript in case.transcripts)
            self.disk += system.weigh().disk
            for question in case.questions:
                self.lines.append(_line(question, system.ask(question, TOP_K)))
            for question in case.questions:
                self.few_ms.append(1000 * system.ask(question, FEW).seconds)
        self.weight = system.weigh()

    def report(self) -> dict[str, Any]:
        return {
            **retrieval_report(self.lines),
            "latency_ten_ms": spread_of(self.few_ms),
            "ingest": {
                "messages": self.messages,
                "seconds": round(self.ingest_s, 1),
                "messages_per_s": round(self.messages / self.ingest_s, 1),
            },
            "disk_bytes_per_message": round(self.disk / self.messages),
            "memory_mb": {
                "process_peak": round(self.weight.memory / 2**20),
                "database": round(self.weight.database / 2**20),
            },
        }


def _line(question: Question, found: Found) -> dict[str, Any]:
    return {
        "type": question.type,
        "gold_sessions": sorted(question.gold_sessions),
        "gold_turns": sorted(question.gold_turns),
        "hits": [{"session": turn.rpartition("/")[0], "turn": turn} for turn in found.turns],
        "latency_ms": 1000 * found.seconds,
    }


def table(dataset: str, systems: Mapping[str, Mapping[str, Any]]) -> str:
    """A row a system, columns in line; no line break at the end.

    Args:
        systems: Each one's report, by its title.
    """
    head = [
        "",
        *SHOWN[dataset],
        "100 hits p50 ms",
        "p95 ms",
        "ten hits p50 ms",
        "p95 ms",
        "messages/s in",
        "bytes a message",
        "memory MB",
    ]
    rows = [head] + [_row(title, report, SHOWN[dataset]) for title, report in systems.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_table_line(row, widths) for row in rows)


def _row(title: str, report: Mapping[str, Any], shown: Sequence[str]) -> list[str]:
    memory = report["memory_mb"]
    peak = f"{memory['process_peak']}"
    return [
        title,
        *(f"{report['metrics']['overall'][name]['value']:.3f}" for name in shown),
        *(
            f"{report[name][share]}"
            for name in ("latency_ms", "latency_ten_ms")
            for share in ("p50", "p95")
        ),
        f"{report['ingest']['messages_per_s']}",
        f"{report['disk_bytes_per_message']:,}",
        f"{peak} + {memory['database']}" if memory["database"] else peak,
    ]


def _table_line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)])
