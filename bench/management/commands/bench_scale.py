"""`manage.py bench_scale`: how recall's speed and size grow with what is remembered."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, ArgumentTypeError
from itertools import islice
from typing import Any

from bench.metrics import percentile
from bench.runs import UnrestrictedCommand, own_schema
from bench.scale import bare_comparison, in_processes, in_threads, intake, latency, sizes
from bench.synthetic_rows import SUBJECTS, MessageGenerator, fill, palace_named, tidy
from palace.models import Drawer, EmbeddingSpace, Palace
from palace.storage.indexing.spaces import active_space

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
            help=f"In the palace of each of {CLIENTS} who ask at once.",
        )
        parser.add_argument("--keep", action="store_true", help="Keep the palaces for next time.")

    def handle(
        self,
        *,
        drawers: list[int],
        messages: int,
        client_drawers: int,
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
                for number in range(CLIENTS)
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
            "clients": CLIENTS,
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
