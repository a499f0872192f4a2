"""The option `--asked-again` of a benchmark's command."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser
from typing import Any

from bench.asked_again import asked_again, asked_again_report
from bench.command import BenchmarkCommand, Run, Wanted
from bench.logs import Folder
from bench.runs import ask, palace_of, take_in


class AskedAgainCommand(BenchmarkCommand):
    """A benchmark that can repeat its questions once they are in the palace."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--asked-again",
            action="store_true",
            help="full, smoke, retrieve: file the questions as chats, then ask again.",
        )

    def run(self, wanted: Wanted) -> Run:
        run = super().run(wanted)
        return dataclasses.replace(run, asked_again=bool(wanted.more.get("asked_again")))

    def finished(self, run: Run) -> dict[str, Any]:
        if run.asked_again:
            self._ask_again(run)
        return super().finished(run)

    def report(self, folder: Folder) -> dict[str, Any]:
        report, second = super().report(folder), folder.again.retrieval.lines()
        if not second:
            return report
        return {**report, "asked_again": asked_again_report(folder.retrieval.lines(), second)}

    def _ask_again(self, run: Run) -> None:
        """Resumes where an earlier process was stopped."""
        folder = run.folder.again
        for log in (folder.ingest, folder.retrieval):
            log.mend()
        done = {line["id"] for line in folder.retrieval.lines()}
        for case in run.cases:
            if done.issuperset(question.id for question in case.questions):
                continue
            again = asked_again(case, palace_of(case), run.recipe, folder.ingest)
            palace = take_in(again, folder.ingest)
            for line in ask(again, palace, run.recipe, done):
                folder.retrieval.append(line)
