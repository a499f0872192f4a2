"""`manage.py bench_peers`: the same questions through Loci and through other libraries."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from bench.datasets import beam, locomo, longmemeval
from bench.datasets.base import BadData, Case, Dataset
from bench.logs import sha256_of
from bench.peers.loci import Inside
from bench.peers.peer_process import install as install_peer
from bench.peers.peer_process import peer_process
from bench.peers.results import Sheet, table
from bench.peers.systems import LOCI, PEERS, SYSTEMS, PeerFailed, System
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from llm.embedding import deployment_model

Loader = Callable[[Path], Dataset]
SCHEMA = "bench_peers"
LOADERS: dict[str, Loader] = {
    "locomo": locomo.load,
    "longmemeval": longmemeval.load,
    "beam": beam.load,
}


class Command(UnrestrictedCommand):
    help = (
        "Ask Loci, Chroma, MemPalace and mem0 the same questions, one system after the other, all "
        "with the same embedding model. A table goes to standard error, one JSON line to standard "
        "output. docs/peers.md tells how each is used."
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
