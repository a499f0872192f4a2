"""What each system found and cost, summed up, and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.datasets.base import Case, Question
from bench.metrics import retrieval_report
from bench.peers.systems import WARM_UP, Found, System, Weight

# Sessions take the place of their best message, so more of these than the deepest cut are needed.
TOP_K = 100

# The figures each data set is known by; the JSON line has the others too.
SHOWN = {
    "locomo": ("session_recall@10", "turn_recall@10"),
    "longmemeval": ("session_recall_any@5", "session_recall_all@5"),
    "beam": ("turn_recall@10", "turn_recall@20"),
}


@dataclass(slots=True)
class Sheet:
    """
    Attributes:
        lines: One a question, in the form of a retrieval log.
        disk: Bytes that all people's memories took, each weighed before it was asked.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
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
        self.weight = system.weigh()

    def report(self) -> dict[str, Any]:
        return {
            **retrieval_report(self.lines),
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
        "query p50 ms",
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
        f"{report['latency_ms']['p50']}",
        f"{report['latency_ms']['p95']}",
        f"{report['ingest']['messages_per_s']}",
        f"{report['disk_bytes_per_message']:,}",
        f"{peak} + {memory['database']}" if memory["database"] else peak,
    ]


def _table_line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)])
