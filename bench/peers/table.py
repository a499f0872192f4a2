"""The systems side by side, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The figures each data set is known by; the JSON line has the others too.
SHOWN = {
    "locomo": ("session_recall@10", "turn_recall@10"),
    "longmemeval": ("session_recall_any@5", "session_recall_all@5"),
    "beam": ("turn_recall@10", "turn_recall@20"),
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
    return "\n".join(_line(row, widths) for row in rows)


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


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)])
