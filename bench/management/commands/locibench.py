from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import CommandError

from bench.command import BenchmarkCommand, Wanted
from bench.corpus import CORPUS, PARTS, read_people
from bench.corpus.checks import everybody, faults, totals
from bench.corpus.fact_figures import figures
from bench.datasets import locibench
from bench.fact_scores import choose_model
from bench.logs import BadRun
from bench.runs import alone_in, drop_schema, own_schema

FACTS_SCHEMA = "bench_locibench_facts"


class Command(BenchmarkCommand):
    dataset = "locibench"
    load = staticmethod(locibench.load)
    steps: ClassVar[dict[str, str]] = {
        "check": "look for faults in the corpus and count what it holds",
        **BenchmarkCommand.steps,
        "facts": "mine the people's talk, and compare what is learnt with what they state",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--part",
            choices=PARTS,
            default="dev",
            help="The part of the corpus, unless --data names a folder. Read blind once a release.",
        )

    def wanted(self, step: str, options: dict[str, Any]) -> Wanted:
        part = options.pop("part", "dev")
        return super().wanted(step, {**options, "data": options.get("data") or CORPUS / part})

    def step(self, name: str) -> Callable[[Wanted], dict[str, Any]]:
        own = {"check": self.check_corpus, "facts": self.facts}
        return own.get(name) or super().step(name)

    def facts(self, wanted: Wanted) -> dict[str, Any]:
        """
        Raises:
            BadData: the data is no part of the corpus.
            BadRun: nobody in it is annotated.
        """
        people = [person for person in read_people(wanted.data or CORPUS) if person.facts]
        if not people:
            raise BadRun(f"{wanted.data} has no facts.jsonl yet.")
        with alone_in(FACTS_SCHEMA):
            drop_schema(FACTS_SCHEMA)
            with own_schema(FACTS_SCHEMA, keep=False):
                choose_model(with_model=False)
                return {"dataset": self.dataset, "people": len(people), **figures(people)}

    def check_corpus(self, wanted: Wanted) -> dict[str, Any]:
        """
        Raises:
            CommandError: there are faults; each is a line of standard error.
        """
        people = everybody()
        found = list(faults(people))
        self.stderr.writelines(f"{fault}\n" for fault in found)
        if found:
            raise CommandError(f"The corpus has {len(found)} faults.")
        return totals(people)
