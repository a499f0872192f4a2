"""What many palaces need: measured figures of one machine, multiplied under stated assumptions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

DAY_S = 86_400
# Most use of a core at the busiest hour: above it, waiting times grow quickly.
BUSY = 0.6
# The share of memory left to the database's cache.
GB = 1e9


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        bytes_a_message: Of the database, all tables and indexes.
        bytes_a_palace: Of an empty one.
        mine_ms: Processor time of filing and mining a message, facts and episodes included.
        recall_ms: Processor time of a recall, the question's embedding included.
        cache_bytes_a_message: Memory of a web process for a palace that is asked.
        web_mb: Memory of a web process that has answered a recall.
    """

    bytes_a_message: float
    bytes_a_palace: float
    mine_ms: float
    recall_ms: float
    cache_bytes_a_message: float
    web_mb: float


@dataclass(frozen=True, slots=True)
class Assumed:
    """
    Attributes:
        messages: Messages in a palace, on average.
        new_messages: New messages a day, of a palace that is used that day.
        recalls: Recalls a day, of such a palace.
        used_daily: The share of palaces that are used on a day.
        peak: The load of the busiest hour, as a multiple of the day's mean.
        used_at_once: The share of the day's palaces that are in memory at the busiest hour.
        replicas: Copies of the database, including the primary.
        node_gb: Disk space of one database machine.
        cores: Cores of a machine.
    """

    messages: int = 2_000
    new_messages: int = 40
    recalls: int = 20
    used_daily: float = 0.1
    peak: float = 3.0
    used_at_once: float = 0.1
    replicas: int = 2
    node_gb: float = 2_000
    cores: int = 16


def needs(palaces: int, measured: Measured, assumed: Assumed) -> dict[str, Any]:
    """Disk, cores, memory and machines, each rounded up."""
    used = palaces * assumed.used_daily
    stored = palaces * (assumed.messages * measured.bytes_a_message + measured.bytes_a_palace)
    recalls_per_s = used * assumed.recalls * assumed.peak / DAY_S
    mined_per_s = used * assumed.new_messages * assumed.peak / DAY_S
    web_cores = recalls_per_s * measured.recall_ms / 1000 / BUSY
    worker_cores = mined_per_s * measured.mine_ms / 1000 / BUSY
    cached = used * assumed.used_at_once * assumed.messages * measured.cache_bytes_a_message
    webs = max(math.ceil(web_cores), 1)
    return {
        "palaces": palaces,
        "database_gb": _up(stored / GB),
        "database_gb_with_replicas": _up(stored * assumed.replicas / GB),
        "database_nodes": math.ceil(stored / GB / assumed.node_gb),
        "recalls_per_s": _up(recalls_per_s),
        "mined_per_s": _up(mined_per_s),
        "web_cores": webs,
        "worker_cores": max(math.ceil(worker_cores), 1),
        "web_memory_gb": _up(webs * measured.web_mb / 1000 + cached / GB),
        "machines_of_web_and_workers": math.ceil(
            (webs + max(math.ceil(worker_cores), 1)) / assumed.cores
        ),
    }


def report(palaces: list[int], measured: Measured, assumed: Assumed) -> dict[str, Any]:
    return {
        "measured": {name: round(value, 2) for name, value in asdict(measured).items()},
        "assumed": {**asdict(assumed), "busy": BUSY},
        "needs": [needs(number, measured, assumed) for number in palaces],
    }


def _up(value: float) -> float:
    """Two digits, rounded up."""
    if value <= 0:
        return 0
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / step - 1e-9) * step, 6)
