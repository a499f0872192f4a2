"""`manage.py bench_dreams`: what dreams find of what was planted, and what they make up.

Planted are groups of facts: pairs that say the same, pairs at odds, pairs that only look so, and
facts with nothing to do with each other. The scripted model knows the groups and makes deliberate
mistakes: it forgets to delete half of what it merges, names numbers that it was not shown, and
knows no preferences. So a dream with it measures all but the model.
"""

from __future__ import annotations

import json
import threading
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

import bench
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from language.facts import category_of
from language.slugs import slug_of
from language.transcripts import Transcript, Turn
from palace.knowledge.dreaming import dream
from palace.models import Drawer, Entity, Evidence, Fact, Palace, Proposal
from palace.storage import file_transcript
from palace.storage.indexing.fact_vectors import fill_missing
from palace.storage.indexing.spaces import active_space
from settings_app.models import MemorySettings

FOLDER = Path(bench.__file__).parent / "dreams"
SUBJECT = "User"
# The people that groups are assigned to, so that no two groups conflict by accident.
PEOPLE = (
    "Aldous Brigid Cosmo Delphine Evander Fleur Gideon Hester Ivo Jocasta Kester Leonora Magnus"
    " Nerys Osbert Perdita Quentin Rosalind Stellan Tamsin Ursula Valentin Winifred Xanthe"
).split()

BEGAN = datetime(2025, 1, 6, 9, 0, tzinfo=UTC)
LATER = timedelta(days=90)
_TYPES = {
    "likes": Fact.Type.PREFERENCE,
    "dislikes": Fact.Type.PREFERENCE,
    "hates": Fact.Type.PREFERENCE,
    "prefers": Fact.Type.PREFERENCE,
    "visited": Fact.Type.EVENT,
}
_STANCES = {"likes": "positive", "dislikes": "negative", "hates": "negative"}
EXPECTED = {"merge": "duplicates", "contradiction": "contradictions"}

UNKNOWN = 90_001


class BadPlanting(Exception):
    """A line is invalid."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One fact, about `User` in the files; `about` is the person it is assigned to."""

    predicate: str
    object: str
    text: str
    about: str = SUBJECT

    def of(self, person: str) -> Planted:
        return Planted(self.predicate, self.object, self.text.replace(SUBJECT, person), person)


@dataclass(frozen=True, slots=True)
class Group:
    """Facts that belong together, in the order in which they were said.

    Attributes:
        kind: duplicates, contradictions, near_misses or others.
    """

    kind: str
    facts: tuple[Planted, ...]

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(fact.text for fact in self.facts)


KINDS = ("duplicates", "contradictions", "near_misses", "others")


def read(limit: int | None = None) -> list[Group]:
    """All groups, each assigned to a person without other facts on the subject.

    Args:
        limit: The number of each kind; by default all.

    Raises:
        BadPlanting: a line is invalid.
    """
    groups = [group for kind in KINDS for group in list(_lines(kind))[:limit]]
    return list(_assign_people(groups))


def _lines(kind: str) -> Iterator[Group]:
    path = FOLDER / f"{kind}.txt"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line and not line.startswith("#"):
            facts = [part.split(" | ") for part in line.strip().split(" || ")]
            if any(len(fact) != 3 for fact in facts):
                raise BadPlanting(f"{path.name}:{number} is not predicate | object | text.")
            yield Group(kind, tuple(Planted(*(each.strip() for each in fact)) for fact in facts))


def _assign_people(groups: Sequence[Group]) -> Iterator[Group]:
    """Groups that share a word of their objects, or a topic, get different people."""
    taken: defaultdict[str, set[str]] = defaultdict(set)
    texts: set[str] = set()
    for group in groups:
        matters = set(_matters(group.facts))
        person = min(
            PEOPLE,
            key=lambda name: (len(taken[name] & matters), len(taken[name]), PEOPLE.index(name)),
        )
        taken[person] |= matters
        assigned = Group(group.kind, tuple(fact.of(person) for fact in group.facts))
        if texts & assigned.texts:
            raise BadPlanting(f"Stated twice: {sorted(texts & assigned.texts)}")
        texts |= assigned.texts
        yield assigned


def _matters(facts: Iterable[Planted]) -> Iterator[str]:
    common = {"a", "the", "in", "of", "to", "on", "for", "at", "and", "with", "each", "every"}
    for fact in facts:
        yield fact.predicate if fact.predicate not in _MANY else ""
        words = set(fact.object.lower().split()) - common
        yield from words
        if fact.predicate in ("diet", "dietary_preference") or words & {"meat", "fish", "steak"}:
            yield "food"
        if fact.predicate in _TOGETHER:
            yield "together"


# Of these one may well have several that are nothing to each other.
_MANY = frozenset(
    "likes dislikes does owns uses knows wants plans prefers works_on learns speaks takes friend_of"
    " has_condition allergic_to has_relative colleague_of visited visits is_a has_sibling".split()
)
_TOGETHER = frozenset(
    "married_to husband wife partner boyfriend girlfriend engaged_to relationship_status"
    " lives_with".split()
)


@dataclass(frozen=True, slots=True)
class Measured:
    """
    Attributes:
        missed: The texts of groups that were not found; `false` those of wrong pairs.
    """

    kind: str
    planted: int
    found: int
    missed: tuple[tuple[str, ...], ...]
    false: tuple[tuple[str, ...], ...]

    def figures(self) -> dict[str, Any]:
        pairs = self.found + len(self.false)
        return {
            "planted": self.planted,
            "found": self.found,
            "false": len(self.false),
            "recall": round(self.found / self.planted, 3) if self.planted else None,
            "precision": round(self.found / pairs, 3) if pairs else None,
        }


def plant(palace: Palace, groups: Sequence[Group]) -> None:
    """Store all facts, each with its own source; those of a group were said weeks apart."""
    rows: list[tuple[Planted, datetime]] = []
    for number, group in enumerate(groups):
        for place, fact in enumerate(group.facts):
            rows.append((fact, BEGAN + timedelta(minutes=number) + place * LATER))
    turns = tuple(
        Turn(str(number), "user", f"{fact.text}.", at) for number, (fact, at) in enumerate(rows)
    )
    file_transcript(palace, Transcript("bench", "planted", "", turns))
    drawers = {one.external_id: one for one in Drawer.objects.within(palace)}
    people = {
        name: Entity.objects.create(palace=palace, kind="person", slug=slug_of(name), name=name)
        for name in sorted({fact.about for fact, _ in rows})
    }
    facts = [_row(palace, people[fact.about], fact, at) for fact, at in rows]
    Fact.objects.bulk_create(facts)
    Evidence.objects.bulk_create(
        Evidence(palace=palace, fact=fact, drawer=drawers[str(number)], start=0, end=len(fact.text))
        for number, fact in enumerate(facts)
    )
    fill_missing(palace, active_space(), facts)


def _row(palace: Palace, person: Entity, fact: Planted, at: datetime) -> Fact:
    return Fact(
        palace=palace,
        type=_TYPES.get(fact.predicate, Fact.Type.FACT),
        subject=person,
        predicate=fact.predicate,
        object=fact.object,
        stance=_STANCES.get(fact.predicate, ""),
        text=fact.text,
        confidence=0.8,
        category=category_of(fact.predicate),
        # An unknown origin: otherwise the database would refuse the duplicate.
        single=False,
        valid_from=at,
        recorded_at=at,
    )


def measure(palace: Palace, groups: Sequence[Group], *, with_model: bool) -> list[Measured]:
    """Dream, and compare the proposals with the planted groups."""
    dream(palace, with_model=with_model)
    proposed = list(_pairs(palace))
    return [_measured(kind, proposed, groups) for kind in EXPECTED]


def _measured(
    kind: str, proposed: Sequence[tuple[str, frozenset[str]]], groups: Sequence[Group]
) -> Measured:
    wanted = {group.texts: group for group in groups if group.kind == EXPECTED[kind]}
    pairs = {pair for of, pair in proposed if of == kind}
    return Measured(
        kind,
        len(wanted),
        len(wanted.keys() & pairs),
        tuple(tuple(f.text for f in group.facts) for t, group in wanted.items() if t not in pairs),
        tuple(tuple(sorted(pair)) for pair in sorted(pairs - wanted.keys(), key=sorted)),
    )


def _pairs(palace: Palace) -> Iterator[tuple[str, frozenset[str]]]:
    """All pairs of facts within a proposal."""
    for proposal in Proposal.objects.within(palace).filter(kind__in=EXPECTED).order_by("pk"):
        texts = [one["text"] for one in proposal.payload["before"]]
        for pair in combinations(texts, 2):
            yield proposal.kind, frozenset(pair)


@contextmanager
def scripted_model(groups: Sequence[Group]) -> Iterator[str]:
    """Run the server during the block; yields its base URL."""

    class Handler(_Handler):
        planted = groups

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    planted: Sequence[Group] = ()

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self._answer(payload["messages"][-1]["content"]))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer},
            "finish_reason": "stop",
        }
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": payload["model"]}
        content = json.dumps({**body, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, question: str) -> Mapping[str, Any]:
        material = json.loads(question.split("<material>\n")[1].split("\n</material>")[0])
        if not isinstance(material, dict):
            return {"preferences": []}
        numbers = {one["text"]: one["id"] for one in material["memories"]}
        merged, outdated, forgotten = [], [], []
        for group in self.planted:
            if not group.texts <= numbers.keys():
                continue
            ids = [numbers[fact.text] for fact in group.facts]
            if group.kind == "duplicates":
                merged.append({"source_ids": [*ids, UNKNOWN], "text": group.facts[0].text})
                forgotten.append(ids[0])
            elif group.kind == "contradictions":
                outdated.append({"id": ids[0], "by": ids[1]})
        return {"merged": merged, "outdated": outdated, "to_delete": forgotten}

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


SCHEMA = "bench_dreams"
LINE = "{:10}{:>16}{:>9}{:>8}{:>8}{:>9}{:>11}"


class Command(UnrestrictedCommand):
    help = (
        "Plant facts of our own writing in throw-away palaces (200 pairs that say the same, 50 at "
        "odds, 100 that only look so, 100 facts beside), dream, and count what is found and what "
        "is found wrongly: by the local rules, and with a model that is played. Tables on standard "
        "error, one JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, metavar="N", help="So many of each; else all.")
        parser.add_argument(
            "--show-misses", action="store_true", help="Say what was missed, and what is wrong."
        )

    def handle(self, *, limit: int | None, show_misses: bool, **options: Any) -> None:
        try:
            groups = read(limit)
        except BadPlanting as error:
            raise CommandError(str(error)) from error
        with alone_in(SCHEMA):
            drop_schema(SCHEMA)
            with own_schema(SCHEMA, keep=False):
                found = {"rules": _dreamt("rules", groups, MemorySettings.NO_MODEL)}
                with scripted_model(groups) as address:
                    found["model"] = _dreamt("model", groups, address)
        facts = sum(len(group.facts) for group in groups)
        self.stderr.write(f"{facts} facts\n" + "\n".join(_table(found)))
        if show_misses:
            self.stderr.write("\n".join(_misses(found["rules"])))
        line = {by: {one.kind: one.figures() for one in them} for by, them in found.items()}
        self.stdout.write(json.dumps({"facts": facts, **line}))


def _dreamt(name: str, groups: Sequence[Group], provider: str) -> list[Measured]:
    owner, _ = get_user_model().objects.get_or_create(username=f"bench-{name}")
    chosen = {
        "provider": provider,
        "model": "scripted",
        # Nothing is paid for: everything is to be looked at.
        "dream_limit_tokens": 10_000_000,
        "dream_limit_usd": Decimal(100),
    }
    MemorySettings.objects.update_or_create(owner=owner, defaults=chosen)
    palace = Palace.objects.own(owner)
    plant(palace, groups)
    return measure(palace, groups, with_model=name == "model")


def _table(found: dict[str, list[Measured]]) -> list[str]:
    lines = [LINE.format("by", "", "planted", "found", "false", "recall", "precision")]
    for by, them in found.items():
        for one in them:
            cells = ("–" if value is None else str(value) for value in one.figures().values())
            lines.append(LINE.format(by, one.kind, *cells))
    return lines


def _misses(found: Sequence[Measured]) -> list[str]:
    lines = []
    for one in found:
        lines += [f"missed {one.kind}: {' || '.join(texts)}" for texts in one.missed]
        lines += [f"false {one.kind}: {' || '.join(texts)}" for texts in one.false]
    return lines
