"""Run scenarios through the production code, and compare the facts found with the expected ones."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from django.contrib.auth import get_user_model

from bench.fact_scenarios import Expected, Message, Scenario
from language.transcripts import Turn
from palace.knowledge.facts import remember
from palace.models import Fact, Palace
from settings_app.models import MemorySettings

# The normal distribution's two-sided 95 %.
Z = 1.959964


@dataclass(frozen=True, slots=True)
class Found:
    """A fact at the end of a scenario, active or retired.

    Attributes:
        fate: Why it was retired; empty if it is active.
    """

    subject: str
    predicate: str
    object: str
    text: str
    aspect: str = ""
    stance: str = ""
    valid_from: date | None = None
    valid_to: date | None = None
    fate: str = ""

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object!r} ({self.text})"


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


def matches(expected: Expected, fact: Found) -> bool:
    """Whether a fact matches, apart from its dates and aspect."""
    said = f"{fact.object}\n{fact.text}"
    return (
        _is_one_of(expected.subject, fact.subject)
        and _is_one_of(expected.predicate, fact.predicate)
        and all(_holds(said, word) for word in expected.words)
        and not any(_holds(said, word) for word in expected.without)
        and not (expected.stance and fact.stance and fact.stance not in expected.stance)
    )


def _may_be(scenario: Scenario, fact: Found) -> bool:
    """Ignore facts that name a subject by its own name."""
    names_itself = fact.predicate == "name" and fact.object.lower() == fact.subject.lower()
    return names_itself or _any_matches(scenario.may, fact)


def _any_matches(wanted: Iterable[Expected], fact: Found) -> bool:
    return any(matches(each, fact) for each in wanted)


def _is_one_of(patterns: Iterable[str], value: str) -> bool:
    return any(fnmatchcase(value.lower(), pattern.lower()) for pattern in patterns)


def _holds(said: str, word: str) -> bool:
    return _pattern(word).search(said) is not None


@cache
def _pattern(word: str) -> re.Pattern[str]:
    """The pattern of `cat|vegan*`: an alternative as a whole word, or as the start of one."""
    alternatives = [
        re.escape(each.rstrip("*")) + ("" if each.endswith("*") else r"(?!\w)")
        for each in word.split("|")
    ]
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})", re.IGNORECASE)


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


def details(expected: Expected, fact: Found) -> Iterator[tuple[str, bool]]:
    """The expected details by name, each with whether it is right."""
    if expected.aspect:
        yield "aspect", _is_one_of(expected.aspect, fact.aspect)
    if expected.valid_from:
        yield "valid_from", str(fact.valid_from).startswith(expected.valid_from)
    if expected.valid_to:
        yield "valid_to", str(fact.valid_to).startswith(expected.valid_to)


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
    )


def _day(moment: datetime | None) -> date | None:
    return moment.astimezone(UTC).date() if moment else None
