"""`manage.py bench_facts`: what is remembered of labelled scenarios, and what should have been.

Scenarios run through the production code; the facts found are compared with the expected ones.
"""

from __future__ import annotations

import hashlib
import json
import math
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from tqdm import tqdm

from bench.fact_scenarios import (
    DEV,
    PARTS,
    BadScenario,
    Expected,
    Found,
    Message,
    Scenario,
    details,
    matches,
    read,
)
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from language.transcripts import Turn
from palace.knowledge.facts import remember
from palace.models import Fact, Palace
from settings_app.models import MemorySettings

# The normal distribution's two-sided 95 %.
Z = 1.959964


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one scenario.

    Attributes:
        matched: Active facts, each with its expected fact.
        shared: Expected facts that match a fact already paired with another one: "at Google as an
            engineer" may be one fact or two.
        missed: Expected facts without an active fact.
        extra: Unexpected active facts, duplicates included.
        allowed: Active facts that are ignored.
        still_active: Those of `extra` that should be retired.
        retired: Facts that should be retired, each with its outcome: `as expected`, `another fate`,
            `still active` or `never held`.
    """

    scenario: Scenario
    matched: tuple[tuple[Expected, Found], ...]
    shared: tuple[Expected, ...]
    missed: tuple[Expected, ...]
    extra: tuple[Found, ...]
    allowed: tuple[Found, ...]
    still_active: tuple[Found, ...]
    retired: tuple[tuple[Expected, str], ...]


def score(scenario: Scenario, found: Sequence[Found]) -> Score:
    """Pair each active fact with at most one expected fact, so that duplicates count as errors."""
    active = [fact for fact in found if not fact.fate]
    pairs = _paired([_choices(each, active, scenario.retired) for each in scenario.active])
    matched = [(scenario.active[at], active[pairs[at]]) for at in sorted(pairs)]
    rest = [fact for at, fact in enumerate(active) if at not in pairs.values()]
    unpaired = [each for at, each in enumerate(scenario.active) if at not in pairs]
    said_already = [fact for _, fact in matched]
    shared = [each for each in unpaired if any(matches(each, fact) for fact in said_already)]
    allowed = [fact for fact in rest if _may_be(scenario, fact)]
    extra = [fact for fact in rest if not _may_be(scenario, fact)]
    return Score(
        scenario,
        matched=tuple(matched),
        shared=tuple(shared),
        missed=tuple(each for each in unpaired if each not in shared),
        extra=tuple(extra),
        allowed=tuple(allowed),
        still_active=tuple(fact for fact in extra if _any_matches(scenario.retired, fact)),
        retired=tuple((each, _outcome(each, extra, found)) for each in scenario.retired),
    )


def _may_be(scenario: Scenario, fact: Found) -> bool:
    """Ignore facts that name a subject by its own name."""
    names_itself = fact.predicate == "name" and fact.object.lower() == fact.subject.lower()
    return names_itself or _any_matches(scenario.may, fact)


def _any_matches(wanted: Iterable[Expected], fact: Found) -> bool:
    return any(matches(each, fact) for each in wanted)


def _choices(expected: Expected, active: Sequence[Found], retired: Sequence[Expected]) -> list[int]:
    """Indices of the active facts that match, those with the fewest wrong details first.

    A fact that should be retired is left out if a detail is wrong.
    """
    fitting = [at for at, fact in enumerate(active) if matches(expected, fact)]
    wrong = {
        at: sum(not is_right for _, is_right in details(expected, active[at])) for at in fitting
    }
    kept = [at for at in fitting if not (wrong[at] and _any_matches(retired, active[at]))]
    return sorted(kept, key=lambda at: wrong[at])


def _paired(choices: Sequence[Sequence[int]]) -> dict[int, int]:
    """A maximum matching: the choice of each chooser, both by index.

    Augmenting paths (Kuhn, 1955); earlier choices are tried first.
    """
    taken: dict[int, int] = {}

    def place(chooser: int, tried: set[int]) -> bool:
        for at in choices[chooser]:
            if at not in tried:
                tried.add(at)
                if at not in taken or place(taken[at], tried):
                    taken[at] = chooser
                    return True
        return False

    for chooser in range(len(choices)):
        place(chooser, set())
    return {chooser: at for at, chooser in taken.items()}


def _outcome(expected: Expected, extra: Sequence[Found], found: Sequence[Found]) -> str:
    if any(matches(expected, fact) for fact in extra):
        return "still active"
    fates = {fact.fate for fact in found if fact.fate and matches(expected, fact)}
    if not fates:
        return "never held"
    return "as expected" if fates & set(expected.how) else "another fate"


def report(scores: Sequence[Score]) -> dict[str, Any]:
    """Figures of all scenarios, each `{"value", "ci", "n"}`; the value of none is None.

    `precision` is the share of matched facts among active ones, without the allowed; `recall` that
    of found facts among expected ones; `retired` that of facts retired as expected; `details` that
    of right dates and aspects of matched facts; `quiet` that of scenarios without expected facts
    that left none.
    """
    outcomes = Counter(outcome for one in scores for _, outcome in one.retired)
    matched = sum(len(one.matched) for one in scores)
    said = matched + sum(len(one.shared) for one in scores)
    silent = [one for one in scores if not (one.scenario.active or one.scenario.retired)]
    right = [is_right for one in scores for pair in one.matched for _, is_right in details(*pair)]
    return {
        "scenarios": len(scores),
        "precision": share(matched, matched + sum(len(one.extra) for one in scores)),
        "recall": share(said, said + sum(len(one.missed) for one in scores)),
        "retired": share(outcomes["as expected"], outcomes.total()),
        "details": share(sum(right), len(right)),
        "quiet": share(sum(not one.extra for one in silent), len(silent)),
        "retired_how": dict(sorted(outcomes.items())),
        "still_active": sum(len(one.still_active) for one in scores),
        "allowed": sum(len(one.allowed) for one in scores),
    }


def reliability(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Of active facts by confidence, lowest first: how many there are, and the share that is right.

    Each line is `{"from", "to", "stated", "right"}`, with the mean confidence as `stated`; a
    bucket is a tenth wide and has its lower bound. Allowed facts are left out, as in `precision`.
    """
    judged = [(fact, True) for one in scores for _, fact in one.matched]
    judged += [(fact, False) for one in scores for fact in one.extra]
    buckets: dict[int, list[tuple[Found, bool]]] = {}
    for fact, is_right in judged:
        # In hundredths first: ten times 0.29999 is no 3.
        tenth = min(int(round(fact.confidence * 100) // 10), 9)
        buckets.setdefault(tenth, []).append((fact, is_right))
    return [
        {
            "from": tenth / 10,
            "to": (tenth + 1) / 10,
            "stated": round(sum(fact.confidence for fact, _ in of) / len(of), 3),
            "right": share(sum(is_right for _, is_right in of), len(of)),
        }
        for tenth, of in sorted(buckets.items())
    ]


def by_tag(scores: Sequence[Score]) -> dict[str, dict[str, Any]]:
    """A report for each tag; a scenario with several tags counts for each."""
    tags = sorted({tag for one in scores for tag in one.scenario.tags})
    return {tag: report([one for one in scores if tag in one.scenario.tags]) for tag in tags}


def share(some: int, of: int) -> dict[str, Any]:
    """A share with its 95 % interval (Wilson, 1927), assuming independence."""
    if not of:
        return {"value": None, "ci": None, "n": 0}
    value, spread = some / of, Z * Z / of
    middle = (value + spread / 2) / (1 + spread)
    half = Z * math.sqrt(value * (1 - value) / of + spread / (4 * of)) / (1 + spread)
    bounds = [max(0.0, middle - half), min(1.0, middle + half)]
    return {"value": round(value, 4), "ci": [round(bound, 4) for bound in bounds], "n": of}


def choose_model(*, with_model: bool) -> None:
    """Extract facts by the local rules, ignoring the operator's model, unless requested."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    provider = MemorySettings.OF_THIS_SERVER if with_model else MemorySettings.NO_MODEL
    MemorySettings.objects.update_or_create(owner=owner, defaults={"provider": provider})


def play(scenario: Scenario) -> list[Found]:
    """Send the messages call by call; return all facts, active and retired.

    Call it once per scenario: a second run would only repeat the facts.
    """
    palace = palace_named(scenario.id)
    for messages in scenario.calls():
        remember(palace, [_turn(at, message) for at, message in enumerate(messages)])
    return found_in(palace)


def palace_named(name: str) -> Palace:
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    palace, _ = Palace.objects.get_or_create(owner=owner, subject=name)
    return palace


def found_in(palace: Palace) -> list[Found]:
    """All facts of a palace, active and retired."""
    facts = Fact.objects.within(palace).select_related("subject").order_by("pk")
    return [_found(fact) for fact in facts]


def _turn(at: int, message: Message) -> Turn:
    return Turn(str(at), message.role, message.text, message.said_at, message.speaker)


def _found(fact: Fact) -> Found:
    return Found(
        subject=fact.subject.name,
        predicate=fact.predicate,
        object=fact.object,
        text=fact.text,
        aspect=fact.aspect,
        stance=fact.stance,
        valid_from=_day(fact.valid_from),
        valid_to=_day(fact.valid_to),
        fate=fact.fate,
        confidence=fact.confidence,
    )


def _day(moment: datetime | None) -> date | None:
    return moment.astimezone(UTC).date() if moment else None


SCHEMA = "bench_facts"
SHOWN = ("precision", "recall", "retired", "details", "quiet")
RELIABLE = "{:>12}{:>8}{:>20}"
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
            self.stderr.write("\n".join(_reliability(scores[name])))
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
    return {
        "sha256": digest,
        "overall": report(scores),
        "by_tag": by_tag(scores),
        "reliability": reliability(scores),
    }


def _table(scores: Sequence[Score]) -> Iterator[str]:
    """A line for all, and one a tag, by name."""
    yield LINE.format("", "scenarios", *SHOWN)
    for name, figures in {"all": report(scores), **by_tag(scores)}.items():
        yield LINE.format(name, figures["scenarios"], *(_cell(figures[each]) for each in SHOWN))


def _reliability(scores: Sequence[Score]) -> Iterator[str]:
    """A line a bucket of confidence: the mean that is stated, and how many are right."""
    yield RELIABLE.format("confidence", "stated", "right")
    for row in reliability(scores):
        bounds = f"{row['from']:.1f}–{row['to']:.1f}"
        yield RELIABLE.format(bounds, f"{row['stated']:.2f}", _cell(row["right"]))


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
