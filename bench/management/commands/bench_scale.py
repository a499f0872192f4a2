"""`manage.py bench_scale`: how recall's speed and size grow with what is remembered, and how many
concurrent recalls a second there are, with threads and with processes.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, repeat
from multiprocessing import get_context
from typing import Any

import numpy as np
from django.db import connection

from bench.metrics import percentile
from bench.runs import UnrestrictedCommand, cpu_ms, own_schema
from bench.scale_worker import start
from bench.synthetic_palace import conversations
from bench.synthetic_rows import SUBJECTS, MessageGenerator, fill, palace_named, tidy
from isolation.raw_sql import fetch_rows
from llm.embedding import deployment_model, embed
from llm.embedding.local import embedder
from palace.mining.pipeline import mine_many
from palace.models import Drawer, EmbeddingSpace, Palace
from palace.recall import RecallRequest, recall
from palace.storage.indexing.spaces import active_space, model_of

CLIENTS, CLIENTS_DRAWERS = 8, 10_000
# Recalls in each palace of up to so many drawers; in a larger one fewer, but at least LEAST.
RECALLS, EASY, LEAST = 200, 20_000, 60

HEAD = ("drawers", "recall p50", "p95", "CPU p50", "with embedding p50", "p95", "NumPy p50")


class Command(UnrestrictedCommand):
    help = (
        "Measure recall in palaces of several sizes, of made-up talk among others' data, beside "
        "NumPy over the same vectors and the bare embedder. A table on standard error, one JSON "
        "line on standard output. Recall is timed with its trace; without embedding is each "
        "recall less the same question's embedding just before it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--drawers",
            type=_sizes,
            default=[1000, 10_000, 100_000],
            help="Sizes of palaces, separated by commas.",
        )
        parser.add_argument(
            "--messages", type=int, default=2000, help="So many are mined, to measure that."
        )
        parser.add_argument(
            "--client-drawers",
            type=int,
            default=CLIENTS_DRAWERS,
            help="In the palace of each of the clients.",
        )
        parser.add_argument("--clients", type=int, default=CLIENTS, help="So many ask at once.")
        parser.add_argument("--keep", action="store_true", help="Keep the palaces for next time.")

    def handle(
        self,
        *,
        drawers: list[int],
        messages: int,
        client_drawers: int,
        clients: int,
        keep: bool,
        **options: Any,
    ) -> None:
        with own_schema("bench_scale", keep=keep, data=f"clients of {client_drawers} drawers"):
            space = active_space()
            generator = MessageGenerator(
                space, subjects=min(SUBJECTS, max(*drawers, client_drawers))
            )
            report: dict[str, Any] = {"alone": self._alone(space, generator, min(drawers))}
            palaces = [_filled(f"{size} drawers", space, generator, size) for size in drawers]
            others = [
                _filled(f"client {number}", space, generator, client_drawers)
                for number in range(clients)
            ]
            report["bytes_a_drawer"] = sizes()
            tidy()
            report["palaces"] = [
                self._measured(palace, space, generator, size)
                for palace, size in zip(palaces, drawers, strict=True)
            ]
            report["clients"] = {"drawers": client_drawers, **self._clients(others, generator)}
            seed = int(time.time())
            report["intake"] = intake(palace_named(f"newcomer {seed}"), messages, seed)
        self._show(report)
        self.stdout.write(json.dumps(report))

    def _alone(
        self, space: EmbeddingSpace, generator: MessageGenerator, size: int
    ) -> dict[str, Any] | None:
        """The smallest palace while nobody else has stored anything; None if they have."""
        if Drawer.objects.exists():
            return None
        palace = _filled(f"{size} drawers", space, generator, size)
        tidy()
        return self._measured(palace, space, generator, size)

    def _measured(
        self, palace: Palace, space: EmbeddingSpace, generator: MessageGenerator, size: int
    ) -> dict[str, Any]:
        self.stderr.write(f"Asking in {palace} …", style_func=str)
        number = max(min(RECALLS, RECALLS * EASY // size), LEAST)
        measured = latency(palace, space, generator.questions(), number)
        bare = bare_comparison(palace, space, LEAST)
        return {
            "drawers": size,
            **measured.report(),
            "numpy_p50_ms": round(percentile(bare, 0.5), 2),
        }

    def _clients(self, palaces: list[Palace], generator: MessageGenerator) -> dict[str, Any]:
        keys, questions = [palace.pk for palace in palaces], list(islice(generator.questions(), 40))
        return {
            "clients": len(palaces),
            "threads": in_threads(keys, questions),
            "processes": in_processes(keys, questions),
        }

    def _show(self, report: dict[str, Any]) -> None:
        lines = [" ".join(f"{name:>18}" for name in HEAD)]
        alone = [{**report["alone"], "drawers": "alone"}] if report["alone"] else []
        for row in [*alone, *report["palaces"]]:
            cells = (
                *(row["drawers"], row["recall_p50_ms"], row["recall_p95_ms"]),
                *(row.get("recall_cpu_p50_ms", "–"), row["with_embedding_p50_ms"]),
                *(row["with_embedding_p95_ms"], row["numpy_p50_ms"]),
            )
            lines.append(" ".join(f"{cell:>18}" for cell in cells))
        lines += [
            f"{name}: {', '.join(f'{key} {value}' for key, value in report[name].items())}"
            for name in ("clients", "bytes_a_drawer", "intake")
        ]
        self.stderr.write("\n".join(lines), style_func=str)


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(size) for size in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise ArgumentTypeError(f"{text!r} is no list of sizes; write it like 1000,10000.")
    return sizes


def _filled(name: str, space: EmbeddingSpace, generator: MessageGenerator, drawers: int) -> Palace:
    """The palace of that name; one that was kept is full already."""
    palace = palace_named(name)
    if not Drawer.objects.within(palace).exists():
        fill(palace, space, generator, drawers)
    return palace


# Warm-up questions.
WARMING_UP = 15
# The number of neighbours in the brute-force search.
CLOSEST = 100
# Conversations measured in turn, so that a machine that slows down slows both alike.
ROUND = 10

Ask = Callable[[int, Sequence[str]], None]


@dataclass(slots=True)
class Latency:
    """Of recalls in one palace, one after the other, each with its trace. Milliseconds.

    Attributes:
        whole: From the question to the answer.
        embedding: Of the same question by itself just before, metered as always.
        cpu: Of the Python thread and the database's process together, without the embedding;
            empty where the server's processes cannot be seen.
    """

    whole: list[float] = field(default_factory=list)
    embedding: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def without_embedding(self) -> list[float]:
        return [whole - part for whole, part in zip(self.whole, self.embedding, strict=True)]

    def report(self) -> dict[str, float]:
        said = {}
        for name, values in (
            ("recall", self.without_embedding),
            ("with_embedding", self.whole),
            ("embedding", self.embedding),
        ):
            said[f"{name}_p50_ms"] = round(percentile(values, 0.5), 2)
            said[f"{name}_p95_ms"] = round(percentile(values, 0.95), 2)
        if self.cpu:
            said["recall_cpu_p50_ms"] = round(percentile(self.cpu, 0.5), 2)
        return said


def latency(
    palace: Palace, space: EmbeddingSpace, questions: Iterator[str], number: int
) -> Latency:
    """Ask `number` questions, after some to warm up.

    Without the embedding is each recall less the same question's embedding just before.
    """
    model, found = model_of(space), Latency()
    for question in islice(questions, WARMING_UP):
        recall(palace, RecallRequest(question, recipe="default", rerank=False))
    for question in islice(questions, number):
        first = cpu_ms()
        started = time.perf_counter()
        embed([question], model, owner_id=palace.owner_id, is_question=True)
        embedded, second = time.perf_counter(), cpu_ms()
        resumed = time.perf_counter()
        recall(palace, RecallRequest(question, recipe="default", rerank=False))
        found.whole.append((time.perf_counter() - resumed) * 1000)
        found.embedding.append((embedded - started) * 1000)
        if first and second and (third := cpu_ms()):
            found.cpu.append((third - second) - (second - first))
    return found


def bare_comparison(palace: Palace, space: EmbeddingSpace, number: int) -> list[float]:
    """Milliseconds for the closest vectors by NumPy, all of them in memory as float32."""
    rows = fetch_rows(
        "SELECT substring(halfvec_send(embedding) FROM 5) FROM palace_passage"
        " WHERE palace_id = %s AND space_id = %s",
        [palace.pk, space.pk],
    )
    halves = np.frombuffer(b"".join(vector for (vector,) in rows), ">f2")
    vectors = halves.astype(np.float32).reshape(len(rows), space.dimensions)
    times = []
    for asked in vectors[:: max(len(vectors) // number, 1)][:number]:
        started = time.perf_counter()
        cosines = vectors @ asked
        np.argpartition(cosines, -min(CLOSEST, len(cosines)))
        times.append((time.perf_counter() - started) * 1000)
    return times


def sizes() -> dict[str, float]:
    """Bytes a drawer of everything in this schema, indexes and free space included."""
    drawers = Drawer.objects.count()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_total_relation_size('palace_passage'),"
            " pg_indexes_size('palace_passage'), pg_total_relation_size('palace_posting'),"
            " pg_indexes_size('palace_posting'), pg_total_relation_size('palace_drawer'),"
            " (SELECT sum(octet_length(text)) FROM palace_drawer)"
        )
        passages, in_passages, postings, in_postings, rows, text = cursor.fetchone()
    return {
        "passages": round(passages / drawers),
        "of_them_indexes": round(in_passages / drawers),
        "postings": round(postings / drawers),
        "of_those_indexes": round(in_postings / drawers),
        "index": round((passages + postings) / drawers),
        "drawers": round(rows / drawers),
        "text": round(text / drawers),
    }


def intake(palace: Palace, messages: int, seed: int) -> dict[str, float]:
    """Messages a second through mining, and through the bare embedder, in turns.

    Args:
        seed: Not one of an earlier run in the same schema: its vectors would be remembered.
    """
    transcripts, model = list(conversations(messages, seed=seed)), deployment_model()
    bare = embedder(model.name)
    bare_s = mined_s = 0.0
    for first in range(0, len(transcripts), ROUND):
        part = transcripts[first : first + ROUND]
        texts = [turn.text for transcript in part for turn in transcript.turns]
        started = time.perf_counter()
        bare.embed(texts)
        embedded = time.perf_counter()
        mine_many(palace, part)
        bare_s += embedded - started
        mined_s += time.perf_counter() - embedded
    return {
        "messages": messages,
        "mined_per_s": round(messages / mined_s, 1),
        "embedded_per_s": round(messages / bare_s, 1),
        "mined_of_embedded": round(bare_s / mined_s, 3),
    }


def in_threads(palaces: Sequence[int], questions: Sequence[str]) -> dict[str, float]:
    """As in one web server's process.

    Args:
        palaces: Their keys, one a client.
        questions: Each client asks all of them.
    """
    with ThreadPoolExecutor(len(palaces)) as clients:
        return _rates(clients, palaces, questions)


def in_processes(palaces: Sequence[int], questions: Sequence[str]) -> dict[str, float]:
    """As on a server with several of them; arguments as for `in_threads`."""
    settings = connection.settings_dict
    reached = settings["NAME"], settings["OPTIONS"]["options"]
    with ProcessPoolExecutor(
        len(palaces), get_context("spawn"), initializer=start, initargs=reached
    ) as clients:
        return _rates(clients, palaces, questions)


def _rates(clients: Executor, palaces: Sequence[int], questions: Sequence[str]) -> dict[str, float]:
    """Recalls a second; without embedding is what is left of the time when that is taken away.

    With all cores busy the times of the parts add up.
    """
    _busy(clients, _recall, palaces, questions[:5])
    whole = _busy(clients, _recall, palaces, questions)
    embedding = _busy(clients, _embed, palaces, questions)
    number = len(palaces) * len(questions)
    return {
        "recalls_per_s": round(number / (whole - embedding), 1),
        "with_embedding_per_s": round(number / whole, 1),
        "embedding_per_s": round(number / embedding, 1),
    }


def _busy(clients: Executor, ask: Ask, palaces: Sequence[int], questions: Sequence[str]) -> float:
    """Seconds until the last client is done."""
    started = time.perf_counter()
    list(clients.map(_ask_all, repeat(ask), palaces, repeat(questions)))
    return time.perf_counter() - started


def _ask_all(ask: Ask, palace: int, questions: Sequence[str]) -> None:
    try:
        ask(palace, questions)
    finally:
        connection.close()


def _recall(palace: int, questions: Sequence[str]) -> None:
    found = Palace.objects.get(pk=palace)
    for question in questions:
        recall(found, RecallRequest(question, recipe="default", rerank=False))


def _embed(palace: int, questions: Sequence[str]) -> None:
    owner, model = Palace.objects.get(pk=palace).owner_id, model_of(active_space())
    for question in questions:
        embed([question], model, owner_id=owner, is_question=True)
