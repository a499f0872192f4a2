"""`manage.py simulate_scale`: what many palaces need, from figures measured on this machine,
multiplied under stated assumptions.
"""

from __future__ import annotations

import json
import math
import time
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.db import connection

from bench.runs import UnrestrictedCommand, own_schema
from bench.scale_worker import start
from bench.synthetic_palace import conversations, questions
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts import learn_unread
from palace.mining.pipeline import mine, mine_many
from palace.models import Palace
from palace.recall import RecallRequest, recall

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


SCHEMA = "bench_simulate_scale"
RECALLS = 41
PALACES = [100_000, 10_000_000]


class Command(UnrestrictedCommand):
    help = (
        "Measure bytes, processor time and memory of a palace on this machine, and multiply them: "
        "what 10^5 and 10^7 palaces need, with the assumptions. An estimate, not a test. "
        "One JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--messages", type=int, default=1000, help="To measure with (1000).")
        parser.add_argument("--palaces", type=int, nargs="+", default=PALACES)
        for each in fields(Assumed):
            name = each.name.replace("_", "-")
            parser.add_argument(f"--assume-{name}", type=type(each.default), default=each.default)

    def handle(self, *, messages: int, palaces: list[int], **options: Any) -> None:
        if messages < 100 or min(palaces) < 1:
            raise CommandError("--messages is at least 100, and --palaces are at least 1.")
        given = {each.name: options[f"assume_{each.name}"] for each in fields(Assumed)}
        with own_schema(SCHEMA, keep=False):
            measured = _measure(messages)
        self.stdout.write(json.dumps(report(palaces, measured, Assumed(**given))))


def _measure(messages: int) -> Measured:
    owner = get_user_model().objects.create(username="bench")
    # What a process reads once, such as the model, is no part of a message.
    small = Palace.objects.create(owner=owner, subject="warm")
    mine(small, next(conversations(10, seed=0)))
    empty = _bytes()
    Palace.objects.bulk_create(Palace(owner=owner, subject=str(each)) for each in range(1000))
    before = _bytes()
    palace = Palace.objects.own(owner)
    talks = list(conversations(messages))
    started = _cpu_s()
    stored = mine_many(palace, talks)
    learn_unread(palace)
    write_due_episodes(palace)
    mined_s, size = _cpu_s() - started, _bytes() - before
    of_web = _in_another_process(small.pk, palace.pk, list(islice(questions(talks), RECALLS)))
    return Measured(
        bytes_a_message=size / stored,
        bytes_a_palace=max(before - empty, 0) / 1000,
        mine_ms=mined_s * 1000 / stored,
        recall_ms=of_web.recall_ms,
        cache_bytes_a_message=of_web.grown / stored,
        web_mb=of_web.memory / 1e6,
    )


class _OfWeb(NamedTuple):
    """
    Attributes:
        memory, grown: Bytes after a recall in a small palace; what the palace to measure adds.
    """

    recall_ms: float
    memory: int
    grown: int


def _in_another_process(small: int, palace: int, asked: list[str]) -> _OfWeb:
    """As a web process does, which mines nothing."""
    settings = connection.settings_dict
    reached = settings["NAME"], settings["OPTIONS"]["options"]
    with ProcessPoolExecutor(
        1, get_context("spawn"), initializer=start, initargs=reached
    ) as process:
        return process.submit(_recalls, small, palace, asked).result()


def _recalls(small: int, palace: int, asked: list[str]) -> _OfWeb:
    def ask(key: int, question: str) -> None:
        recall(Palace.objects.get(pk=key), RecallRequest(question, rerank=False))

    ask(small, asked[0])
    memory = psutil.Process().memory_info().rss
    ask(palace, asked[0])
    grown = max(psutil.Process().memory_info().rss - memory, 0)
    started = _cpu_s()
    for question in asked[1:]:
        ask(palace, question)
    return _OfWeb((_cpu_s() - started) * 1000 / (len(asked) - 1), memory, grown)


def _bytes() -> int:
    """Of all tables and indexes of the schema."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = %s::regnamespace",
            [SCHEMA],
        )
        return int(cursor.fetchone()[0])


def _cpu_s() -> float:
    """Of this process and of the server's for its connection, where that can be seen."""
    server = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    try:
        theirs = int(server.read_text().split()[0]) / 1e9
    except OSError:
        theirs = 0.0
    return time.process_time() + theirs
