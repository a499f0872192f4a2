"""Compute figures from a retrieval log. Needs no database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.metrics import all_at, any_at, interval, mean, ndcg_at, percentile, recall_at

DEPTHS = (5, 10, 20)
# LongMemEval publishes figures for turns down to here.
TURN_DEPTHS = (*DEPTHS, 50)


def retrieval_report(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`questions`, `metrics` (overall and by type), `latency_ms`, and where there are any `notes`:
    how often recall said that something was degraded.

    A question without gold turns counts for sessions only, so `n` differs between metrics.

    Args:
        lines: As `bench.runs.ask` makes them; not empty.
    """
    by_type: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    overall: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        for name, value in scores(line):
            by_type[line["type"]][name].append(value)
            overall[name].append(value)
    latencies = [line["latency_ms"] for line in lines]
    notes = Counter(note for line in lines for note in line.get("notes", []))
    return {
        "questions": len(lines),
        "metrics": {
            "overall": summary(overall),
            "by_type": {kind: summary(found) for kind, found in sorted(by_type.items())},
        },
        "latency_ms": {
            "p50": round(percentile(latencies, 0.5), 1),
            "p95": round(percentile(latencies, 0.95), 1),
        },
        **({"notes": dict(notes)} if notes else {}),
    }


def scores(line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Every metric of one question. Sessions stand where the best of their turns does."""
    gold, hits = line["gold_sessions"], line["hits"]
    sessions = list(dict.fromkeys(hit["session"] for hit in hits))
    for k in DEPTHS:
        yield f"session_recall_any@{k}", any_at(sessions, gold, k)
        yield f"session_recall_all@{k}", all_at(sessions, gold, k)
        yield f"session_recall@{k}", recall_at(sessions, gold, k)
        yield f"session_ndcg@{k}", ndcg_at(sessions, gold, k)
    if gold := line["gold_turns"]:
        turns = [hit["turn"] for hit in hits]
        for k in TURN_DEPTHS:
            yield f"turn_recall@{k}", recall_at(turns, gold, k)
            yield f"turn_recall_any@{k}", any_at(turns, gold, k)
            yield f"turn_recall_all@{k}", all_at(turns, gold, k)
            yield f"turn_ndcg@{k}", ndcg_at(turns, gold, k)


def summary(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Of each metric its mean, the interval of it, and of how many questions."""
    return {
        name: figure(mean(found), interval(found), len(found)) for name, found in values.items()
    }


def figure(value: float, ci: tuple[float, float], n: int) -> dict[str, Any]:
    return {"value": round(value, 4), "ci": [round(bound, 4) for bound in ci], "n": n}


def ingest_report(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How many messages were taken in, and in how many seconds.

    A case taken in anew, in another schema, counts once. One whose ingest was killed in the
    middle counts with all of its messages, but only with the seconds after.
    """
    palaces = {line["case"]: line["palace"] for line in lines}
    counted = [line for line in lines if line["palace"] == palaces[line["case"]]]
    messages = {line["case"]: line["messages"] for line in counted}
    return {
        "messages": sum(messages.values()),
        "seconds": round(sum(line["seconds"] for line in counted), 1),
    }
