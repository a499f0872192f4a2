from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from bench import corpus
from bench.command import BenchmarkCommand, Wanted
from bench.corpus import (
    CORPUS,
    OWNER,
    PARTS,
    SAMPLE,
    Person,
    Stated,
    plain_lines,
    read_people,
    read_talk,
)
from bench.corpus.agreement import (
    Readings,
    agreement,
    alike_predicates,
    compared,
    names_of,
    stated,
)
from bench.corpus.checks import everybody, faults, totals
from bench.fact_scenarios import FATES, Expected, Scenario
from bench.logs import BadRun
from bench.management.commands.bench_facts import (
    Score,
    by_tag,
    choose_model,
    found_in,
    palace_named,
    report,
    score,
    share,
)
from bench.runs import alone_in, drop_schema, own_schema
from language.facts import UNRESOLVED, USER
from palace.mining.pipeline import mine
from palace.models import Evidence, Palace, Statement

SAMPLE_FILE = settings.BASE_DIR / "palace" / "transfer" / "sample_palace.jsonl"
FACTS_SCHEMA = "bench_locibench_facts"
# Of a value's words, so many of the longest must be found, each by its first letters.
WORDS, LETTERS = 3, 5
_WORD = re.compile(r"\w+")
_STANCES = {"for": ("positive",), "against": ("negative",), "mixed": ()}


class Command(BenchmarkCommand):
    dataset = "locibench"
    load = staticmethod(corpus.load)
    steps: ClassVar[dict[str, str]] = {
        "check": "look for faults in the corpus and count what it holds",
        "agreement": "compare the two annotations of the conversations that were annotated twice",
        **BenchmarkCommand.steps,
        "facts": "mine the people's talk, and compare what is learnt with what they state",
        "sample": "write the sample palace, whose conversations are Clara's in `train`",
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
        own = {
            "check": self.check_corpus,
            "agreement": self.agreement,
            "facts": self.facts,
            "sample": self.write_sample,
        }
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
                return {"dataset": self.dataset, "people": len(people), **fact_figures(people)}

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

    def write_sample(self, wanted: Wanted) -> dict[str, Any]:
        """
        Raises:
            BadCorpus: the talk is not in its form.
        """
        lines = list(plain_lines(read_talk(SAMPLE)))
        SAMPLE_FILE.write_text("".join(lines), encoding="utf-8")
        return {"conversations": len(lines)}

    def agreement(self, wanted: Wanted) -> dict[str, Any]:
        """Of all parts: the conversations were chosen from the whole of `train` and `dev`.

        Raises:
            BadRun: nothing is annotated twice.
        """
        found = agreement(everybody())
        if not found["conversations"]:
            raise BadRun("No conversation has a second annotation.")
        return found


def fact_figures(people: Sequence[Person]) -> dict[str, Any]:
    """What mining learns from the corpus, compared with what its people state.

    Precision, recall and stale facts, overall and by language, as `bench_facts.report` has them.

    `read` compares what was read in each message with what its annotator found there, by the rules
    by which two annotators are compared.

    `taken` is the share of words that look like a fact and are none, on which an active fact rests.
    Call it in a schema of its own: it makes a palace a person.
    """
    scores: list[Score] = []
    readings: list[Readings] = []
    taken, all_none = 0, 0
    for person in tqdm(people, desc="facts", unit="person", disable=None):
        palace = palace_named(person.talk.id)
        for transcript in person.talk.transcripts:
            mine(palace, transcript)
        scores.append(score(scenario_of(person), found_in(palace)))
        readings.append((stated(person.facts), read_by(palace, person), names_of(person)))
        none = [fact for fact in person.facts if fact.event == "none"]
        taken, all_none = taken + _taken(palace, none), all_none + len(none)
    return {
        "overall": report(scores),
        "by_language": by_tag(scores),
        "read": {"facts": sum(len(read) for _, read, _ in readings), **compared(readings)},
        "taken": share(taken, all_none),
        "messages": sum(len(person.talk.turns()) for person in people),
    }


def read_by(palace: Palace, person: Person) -> list[Stated]:
    """What was read in the messages, as an annotator would write it.

    Words that only amend a fact which they do not name are left out.
    """
    found: list[Stated] = []
    for row in Statement.objects.filter(palace=palace).order_by("pk"):
        said = row.content
        if said["predicate"] == UNRESOLVED:
            continue
        name = said["subject"]["name"]
        subject = OWNER if name.casefold() in (USER.casefold(), person.talk.id) else name
        at, event = said["words"][0][0], "denies" if said["negated"] else "begins"
        one = Stated(str(row.pk), at, "", event, subject, said["predicate"], said["object"])
        found.append(one)
    return found


def scenario_of(person: Person) -> Scenario:
    """What must be active at the end, and what must not be."""
    stated = [fact for fact in person.facts if fact.event != "none"]
    closed = {name for fact in stated for name in fact.closes}
    open_now = [fact for fact in stated if fact.id not in closed and fact.event != "ends"]
    return Scenario(
        id=person.talk.id,
        tags=(person.talk.languages[0],),
        messages=(),
        active=tuple(_expected(person, fact) for fact in open_now),
        retired=tuple(_expected(person, fact, FATES) for fact in stated if fact.id in closed),
    )


def _expected(person: Person, fact: Stated, how: tuple[str, ...] = ()) -> Expected:
    return Expected(
        subject=(USER, person.talk.id) if fact.subject == OWNER else (f"*{fact.subject}*",),
        predicate=alike_predicates(fact.predicate),
        words=_words_of(fact.value),
        stance=_STANCES.get(fact.stance, ()),
        how=how,
    )


def _words_of(value: str) -> tuple[str, ...]:
    longest = sorted(_WORD.findall(value), key=len, reverse=True)[:WORDS]
    return tuple(f"{word[:LETTERS]}*" if len(word) > LETTERS else word for word in longest)


def _taken(palace: Palace, none: Sequence[Stated]) -> int:
    rows = Evidence.objects.filter(palace=palace, fact__retired_at=None).values_list(
        "drawer__external_id", "drawer__text", "start", "end"
    )
    resting = list(rows)
    return sum(any(_overlaps(fact, *row) for row in resting) for fact in none)


def _overlaps(fact: Stated, message: str, text: str, start: int, end: int) -> bool:
    at = text.find(fact.words)
    return fact.at == message and at < end and start < at + len(fact.words)
