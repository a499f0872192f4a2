"""Retrieval metrics, and the figures of a retrieval log. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Resamples of a bootstrap, and its seed: an interval is the same whenever it is computed.
RESAMPLES = 2000
SEED = 7

DEPTHS = (5, 10, 20)
# LongMemEval publishes figures for turns down to here.
TURN_DEPTHS = (*DEPTHS, 50)


def recall_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """Share of `gold` among the first `k` of `found`, 0 to 1; `gold` is not empty."""
    return len(set(found[:k]) & set(gold)) / len(set(gold))


def any_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 if any of `gold` is among the first `k`, else 0."""
    return float(bool(set(found[:k]) & set(gold)))


def all_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """1 if all of `gold` are among the first `k`, else 0."""
    return float(set(gold) <= set(found[:k]))


def ndcg_at(found: Sequence[str], gold: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first `k`, 0 to 1, as LongMemEval computes it.

    The published code divides the gain at rank i by log2(i) from rank 2 on, so that rank 2 counts
    as much as rank 1; the textbook's form divides by log2(i + 1). Divided by what the best order
    would give, with all of `gold` first. `found` names nothing twice; `gold` is not empty.
    """
    wanted = set(gold)
    gains = [float(each in wanted) for each in found[:k]]
    return _discounted(gains) / _discounted([1.0] * min(len(wanted), k))


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / (math.log2(rank) or 1) for rank, gain in enumerate(gains, start=1))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean (percentile method)."""
    return interval_of_groups([values])


def interval_of_groups(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The same of the mean of the groups' means, each group resampled within itself."""
    draw = np.random.default_rng(SEED)
    means = np.mean([_resampled(np.asarray(group), draw) for group in groups], axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _resampled(values: NDArray[np.float64], draw: np.random.Generator) -> NDArray[np.float64]:
    """Means of samples as large as `values` itself."""
    means: NDArray[np.float64] = values[
        draw.integers(0, len(values), (RESAMPLES, len(values)), dtype=np.int32)
    ].mean(axis=1)
    return means


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie; nearest rank."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def spread_of(milliseconds: Sequence[float]) -> dict[str, float]:
    """`p50` and `p95`."""
    return {
        "p50": round(percentile(milliseconds, 0.5), 1),
        "p95": round(percentile(milliseconds, 0.95), 1),
    }


def retrieval_report(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`questions`, `metrics` (overall, by type, by language where there are several), `latency_ms`,
    and where there are any `refused`: the shares of questions without an answer, and of those with
    one, that recall found nothing for, and `notes`: how often recall said that something was
    degraded.

    A question without gold turns counts for sessions only, so `n` differs between metrics.

    Args:
        lines: As `bench.runs.ask` makes them; at least one has an answer.
    """
    answerable = [line for line in lines if line["gold_sessions"]]
    latencies = [line["latency_ms"] for line in lines]
    notes = Counter(note for line in lines for note in line.get("notes", []))
    return {
        "questions": len(lines),
        "metrics": {
            "overall": _scored(answerable, "")[""],
            "by_type": _scored(answerable, "type"),
            **({"by_language": found} if (found := _scored(answerable, "language")) else {}),
        },
        "latency_ms": spread_of(latencies),
        **({"refused": _refused(lines)} if len(answerable) < len(lines) else {}),
        **({"notes": dict(notes)} if notes else {}),
    }


def _scored(lines: Sequence[Mapping[str, Any]], field: str) -> dict[str, dict[str, Any]]:
    """Every metric by the value of a field, of lines that have it; of all lines without a field."""
    groups: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if not field or field in line:
            for name, value in scores(line):
                groups[line[field] if field else ""][name].append(value)
    return {value: summary(found) for value, found in sorted(groups.items())}


def _refused(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        kind = "answerable" if line["gold_sessions"] else "unanswerable"
        found[kind].append(float(not line["hits"]))
    return summary(found)


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

    A case ingested again, in another schema, counts once. One whose ingest was killed in the
    middle counts with all of its messages, but only with the seconds after.
    """
    palaces = {line["case"]: line["palace"] for line in lines}
    counted = [line for line in lines if line["palace"] == palaces[line["case"]]]
    messages = {line["case"]: line["messages"] for line in counted}
    return {
        "messages": sum(messages.values()),
        "seconds": round(sum(line["seconds"] for line in counted), 1),
    }
