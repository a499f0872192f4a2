"""What is written down of a system while it is measured, and summed up at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.datasets.base import Case, Question
from bench.peers.systems import WARM_UP, Found, System, Weight
from bench.scores import retrieval_report

# Sessions take the place of their best message, so more of these than the deepest cut are needed.
TOP_K = 100


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
