"""`manage.py bench_facts`: what is remembered of labelled scenarios, and what should have been."""

from __future__ import annotations

import hashlib
import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from bench.fact_scenarios import DEV, PARTS, BadScenario, Scenario, read
from bench.fact_scores import Score, by_tag, choose_model, details, play, report, score
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema

SCHEMA = "bench_facts"
SHOWN = ("precision", "recall", "retired", "details", "quiet")
LINE = "{:16}{:>10}" + "{:>20}" * len(SHOWN)


class Command(UnrestrictedCommand):
    help = (
        "Tell labelled scenarios to a throw-away palace each, and measure the facts that are held "
        "at the end. Of the part that is set aside only totals and counts by tag are ever shown, "
        "so that nobody tunes on it. Tables on standard error, one JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--part", choices=(*PARTS, "both"), default=DEV)
        parser.add_argument(
            "--show-misses",
            action="store_true",
            help="Say of each scenario what went wrong; only of those for development.",
        )
        parser.add_argument(
            "--with-model",
            action="store_true",
            help="With the model this server is set up with; by the local rules unless given.",
        )

    def handle(self, *, part: str, show_misses: bool, with_model: bool, **options: Any) -> None:
        names = list(PARTS) if part == "both" else [part]
        try:
            parts = {name: read(PARTS[name]) for name in names}
        except BadScenario as error:
            raise CommandError(str(error)) from error
        scores = _played(parts, with_model=with_model)
        for name in names:
            self.stderr.write(f"\n{name}\n" + "\n".join(_table(scores[name])))
        if show_misses and DEV in scores:
            self.stderr.write("\n" + "\n".join(_misses(scores[DEV])))
        line = {name: _figures(name, scores[name]) for name in names}
        self.stdout.write(json.dumps({"with_model": with_model, "parts": line}))


def _played(parts: dict[str, list[Scenario]], *, with_model: bool) -> dict[str, list[Score]]:
    with alone_in(SCHEMA):
        # Rows left by a killed run would turn every statement into a repetition.
        drop_schema(SCHEMA)
        with own_schema(SCHEMA, keep=False):
            choose_model(with_model=with_model)
            return {
                name: [
                    score(scenario, play(scenario))
                    for scenario in tqdm(scenarios, desc=name, unit="scenario", disable=None)
                ]
                for name, scenarios in parts.items()
            }


def _figures(name: str, scores: Sequence[Score]) -> dict[str, Any]:
    digest = hashlib.sha256(PARTS[name].read_bytes()).hexdigest()
    return {"sha256": digest, "overall": report(scores), "by_tag": by_tag(scores)}


def _table(scores: Sequence[Score]) -> Iterator[str]:
    """A line for all, and one a tag, by name."""
    yield LINE.format("", "scenarios", *SHOWN)
    for name, figures in {"all": report(scores), **by_tag(scores)}.items():
        yield LINE.format(name, figures["scenarios"], *(_cell(figures[each]) for each in SHOWN))


def _cell(figure: dict[str, Any]) -> str:
    """A percentage, with its interval, and of how many."""
    if figure["value"] is None:
        return "–"
    low, high = figure["ci"]
    return f"{figure['value']:.0%} ({low:.0%}–{high:.0%}) {figure['n']}"


def _misses(scores: Sequence[Score]) -> Iterator[str]:
    """What went wrong, after what was said."""
    for one in scores:
        lines = list(_wrong(one))
        if lines:
            yield f"{one.scenario.id}"
            yield from (f"  | {message.text}" for message in one.scenario.messages)
            yield from lines


def _wrong(one: Score) -> Iterator[str]:
    yield from (f"  missed        {each}" for each in one.missed)
    for fact in one.extra:
        yield f"  {'still active' if fact in one.still_active else 'extra':13} {fact}"
    expected = ("as expected", "still active")
    yield from (f"  {how:13} {each}" for each, how in one.retired if how not in expected)
    yield from (f"  wrong detail  {line}" for line in _wrong_details(one))


def _wrong_details(one: Score) -> Iterator[str]:
    for expected, fact in one.matched:
        for name, right in details(expected, fact):
            if not right:
                yield f"{name} {getattr(fact, name)}, not {getattr(expected, name)}: {fact}"
