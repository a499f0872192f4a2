"""`manage.py bench_charts`: the charts and tables of docs/benchmarks.md, from what was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from os.path import relpath
from pathlib import Path
from shutil import which
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bench import charts
from bench.figures import (
    SHOWN,
    TITLES,
    BadResults,
    Result,
    ablate_table,
    ablated,
    block_of,
    learnt_from,
    learnt_table,
    log_row,
    peers_table,
    read_results,
    recall_table,
    rewritten,
    scale_table,
    short,
    summary,
)

DOCS = settings.BASE_DIR / "docs"
LOG_HEAD = "| date | commit | `manage.py …` | data (SHA-256) | hardware |\n"
LOG_HEAD += "| --- | --- | --- | --- | --- |"


class Command(BaseCommand):
    help = (
        "Draw the charts and print the tables of docs/benchmarks.md from the JSON lines that the "
        "benchmark commands print. What is not there is named and left as it is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--results",
            type=Path,
            required=True,
            help="A folder with what the commands printed: locomo.json, beam.json, "
            "longmemeval.json, peers-locomo.json (and so on), scale.json, ablate.json.",
        )
        parser.add_argument("--out", type=Path, default=DOCS / "img", help="Where charts go.")
        parser.add_argument(
            "--write", action="store_true", help="Put the tables into the page, at their marks."
        )
        parser.add_argument("--page", type=Path, default=DOCS / "benchmarks.md", help="The page.")
        parser.add_argument(
            "--readme",
            type=Path,
            default=settings.BASE_DIR / "README.md",
            help="Where one paragraph of the page is quoted.",
        )
        parser.add_argument(
            "--commit",
            help="What was measured, for the log; else the newest commit when a file was written.",
        )
        parser.add_argument(
            "--hardware", default=_hardware(), help="For the log; else that of this machine."
        )

    def handle(
        self,
        *,
        results: Path,
        out: Path,
        write: bool,
        page: Path,
        readme: Path,
        commit: str | None,
        hardware: str,
        **options: Any,
    ) -> None:
        with _explained():
            found = self._read(results)
            images = self._save(_charts(found), out)
            links = {name: relpath(path, page.parent) for name, path in images.items()}
            commits = {name: commit or _commit_before(each.ended) for name, each in found.items()}
            blocks = _blocks(found, links if write else {}, commits)
            rows = [
                log_row(each, commit=commits[name], hardware=hardware)
                for name, each in found.items()
            ]
            if write:
                self._write(page, blocks, rows)
                self._rewrite(readme, {"summary": summary(learnt_from())})
            else:
                self.stdout.write("\n\n".join([*blocks.values(), "\n".join([LOG_HEAD, *rows])]))

    def _read(self, folder: Path) -> dict[str, Result]:
        """What the commands printed, by name; what is missing is named."""
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}.")
        found, missing = read_results(folder)
        for name in missing:
            self.stderr.write(f"There is no {name}.json; what it would show stays as it is.")
        if not found:
            raise CommandError(f"{folder} holds nothing that the commands print.")
        return found

    def _save(self, drawn: Mapping[str, str], out: Path) -> dict[str, Path]:
        out.mkdir(parents=True, exist_ok=True)
        paths = {name: out / f"benchmarks-{name}.svg" for name, chart in drawn.items() if chart}
        for name, path in paths.items():
            path.write_text(drawn[name], encoding="utf-8")
            self.stderr.write(f"{path} is drawn.", style_func=str)
        return paths

    def _write(self, page: Path, blocks: Mapping[str, str], rows: list[str]) -> None:
        there = block_of(_text_of(page), "log")
        self._rewrite(page, {**blocks, "log": _log(there, rows)})

    def _rewrite(self, page: Path, blocks: Mapping[str, str]) -> None:
        text = _text_of(page)
        for name, block in blocks.items():
            text = rewritten(text, name, block)
        page.write_text(text, encoding="utf-8")
        self.stderr.write(f"{page} is written again.", style_func=str)


@contextmanager
def _explained() -> Iterator[None]:
    """Files of results that cannot be used end the command with a sentence."""
    try:
        yield
    except BadResults as error:
        raise CommandError(str(error)) from None
    except (KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"A file of results lacks something: {error!r}.") from error


def _text_of(page: Path) -> str:
    if not page.is_file():
        raise CommandError(f"There is no page {page}.")
    return page.read_text(encoding="utf-8")


def _charts(found: Mapping[str, Result]) -> dict[str, str]:
    """By the end of their names; empty where nothing was measured."""
    panels = {}
    for dataset, metrics in SHOWN.items():
        if result := found.get(f"peers-{dataset}"):
            for metric in metrics[:2]:
                panels[f"{TITLES[dataset]}, {short(metric)}"] = _bars(result, metric)
    columns = ablated(found["ablate"].report) if "ablate" in found else {}
    speeds = [
        charts.Speed(
            row["drawers"],
            row["recall_p50_ms"],
            row["recall_p95_ms"],
            row["numpy_p50_ms"],
            row["embedding_p50_ms"],
        )
        for row in (found["scale"].report["palaces"] if "scale" in found else [])
    ]
    return {
        "peers": charts.beside_peers(panels) if panels else "",
        "scale": charts.speed_by_size(speeds) if speeds else "",
        "ablate": charts.what_signals_give(columns) if any(columns.values()) else "",
    }


def _bars(result: Result, metric: str) -> list[charts.Bar]:
    bars = []
    for name, system in result.report["systems"].items():
        figure = system["metrics"]["overall"][metric]
        low, high = figure["ci"]
        bars.append(charts.Bar(system["title"], figure["value"], (low, high), name == "loci"))
    return bars


SAID = {
    "peers": "Bars of Loci and three libraries, with intervals; the tables below have the figures",
    "scale": "Recall's time by the size of a palace, beside NumPy and the bare embedder",
    "ablate": "Bars of what is lost without each signal, on three data sets",
}


def _blocks(
    found: Mapping[str, Result], links: Mapping[str, str], commits: Mapping[str, str]
) -> dict[str, str]:
    """By their names in the page, charts before tables, and last when it was measured."""
    learnt = learnt_from()
    blocks = {"learnt": learnt_table(learnt)}
    for name, link in links.items():
        blocks[name] = f"![{SAID[name]}]({link})"
    for name, result in found.items():
        if name in SHOWN:
            text = recall_table(result.report, learnt)
        elif name == "scale":
            text = scale_table(result.report)
        elif name == "ablate":
            text = ablate_table(result.report)
        else:
            text = peers_table(result, found.get(name.removeprefix("peers-")))
        measured = f"Measured {result.ended:%Y-%m-%d}, commit {commits[name]}."
        blocks[name] = "\n\n".join(filter(None, (blocks.get(name), text, measured)))
    return blocks


def _log(now: str, rows: list[str]) -> str:
    """What is in the log stays; the same row is not written twice."""
    there = [line for line in now.splitlines() if line.startswith("|")][2:]
    return "\n".join([LOG_HEAD, *there, *(row for row in rows if row not in there)])


def _hardware() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores {platform.machine()}, {memory:.0f} GB"


def _commit_before(ended: datetime) -> str:
    """The newest commit at that time; a dash outside a clone."""
    git = which("git")
    if git is None:
        return "–"
    try:
        said = subprocess.run(  # noqa: S603 - our own arguments, no shell.
            [git, "log", "-1", "--format=%h", f"--before={ended.isoformat()}"],
            cwd=settings.BASE_DIR,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "–"
    return said.stdout.strip() or "–"
