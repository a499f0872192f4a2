"""`manage.py bench_filing`: where conversations are filed, what they are called and tagged with."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from bench import corpus
from bench.datasets import BadData, Case, longmemeval
from bench.datasets.long_chats import load_beam, load_locomo
from bench.logs import Log
from bench.management.commands.bench_facts import choose_model, palace_named, share
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from palace.knowledge.dreaming import dream
from palace.mining.pipeline import mine, suggested_rooms
from palace.models import Drawer, Fact, Palace, Proposal, Room

LOADERS = {
    "locibench": corpus.load,
    "locomo": load_locomo,
    "longmemeval": longmemeval.load,
    "beam": load_beam,
}
SCHEMA = "bench_filing"


class Command(UnrestrictedCommand):
    help = (
        "Mine conversations by the local rules and look at how they are filed: each room's wing, "
        "title, topics and tags go to --rooms, each fact with its words to --facts, what a dream "
        "proposes to --proposals, for people to judge; one JSON line with figures to standard "
        "output. "
        "The titles that a data set gives are withheld: naming is what is measured."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--dataset", choices=LOADERS, required=True)
        add("--data", type=Path, required=True, help="The data set's file or folder.")
        add("--limit", type=int, help="Only the first so many cases.")
        for what in ("rooms", "facts", "proposals"):
            add(f"--{what}", type=Path, help=f"A file for JSON lines of {what}; it is replaced.")

    def handle(
        self, *, dataset: str, data: Path, limit: int | None, rooms: Path | None, **options: Any
    ) -> None:
        log, facts, proposals = map(_replaced, (rooms, options["facts"], options["proposals"]))
        try:
            cases = list(islice(LOADERS[dataset](data).cases, limit))
        except BadData as error:
            raise CommandError(str(error)) from None
        with alone_in(SCHEMA):
            drop_schema(SCHEMA)
            with own_schema(SCHEMA, keep=False):
                choose_model(with_model=False)
                filed = list(_filed(cases, log))
                palaces = [palace_named(case.id) for case in cases]
                _write(facts, (line for palace in palaces for line in _facts(palace)))
                dreamt = _dreamt(palaces)
                _write(proposals, (line for palace in palaces for line in _proposals(palace)))
        self.stdout.write(json.dumps({"dataset": dataset, **_summary(filed), "dreams": dreamt}))


def _filed(cases: Iterable[Case], log: Log | None) -> Iterator[dict[str, Any]]:
    """A line a room, case after case."""
    for case in tqdm(cases, desc="filing", unit="case", disable=None):
        palace = palace_named(case.id)
        for transcript in case.transcripts:
            mine(palace, replace(transcript, title=""))
        for room in Room.objects.within(palace).select_related("wing").order_by("pk"):
            line = {"case": case.id, **_shown(palace, room)}
            if log:
                log.append(line)
            yield line


def _replaced(path: Path | None) -> Log | None:
    log = Log(path) if path else None
    if log:
        log.delete()
    return log


def _write(log: Log | None, lines: Iterable[dict[str, Any]]) -> None:
    if log:
        for line in lines:
            log.append(line)


def _facts(palace: Palace) -> Iterator[dict[str, Any]]:
    """A line a fact that was held at some time, with the first message that it rests on."""
    facts = Fact.objects.within(palace).select_related("subject").order_by("pk")
    for fact in facts.prefetch_related("evidence__drawer"):
        words = min(fact.evidence.all(), key=lambda one: one.pk)
        drawer = words.drawer
        yield {
            "case": palace.subject,
            "said_at": drawer.said_at.isoformat(),
            "speaker": drawer.speaker or drawer.role,
            "message": drawer.text,
            "words": drawer.text[words.start : words.end],
            "fact": fact.text,
            "type": fact.type,
            "predicate": fact.predicate,
            "valid_from": fact.valid_from and fact.valid_from.isoformat(),
            "valid_to": fact.valid_to and fact.valid_to.isoformat(),
            "fate": fact.fate,
            "confidence": fact.confidence,
        }


def _proposals(palace: Palace) -> Iterator[dict[str, Any]]:
    """A line a proposal, with what it would change, then one a room with its suggested wing."""
    for one in Proposal.objects.within(palace).order_by("pk"):
        yield {"case": palace.subject, "kind": one.kind, **one.payload}
    shown = ("external_id", "title", "wing__name", "suggested")
    for conversation, title, wing, suggested in suggested_rooms(palace).values_list(*shown):
        line = {"conversation": conversation, "title": title, "wing": wing, "after": suggested}
        yield {"case": palace.subject, "kind": "room", **line}


def _dreamt(palaces: Iterable[Palace]) -> dict[str, Any]:
    """What a dream by the rules proposes, by kind, and how many active facts it looks at.

    `rooms` counts the conversations for which it suggests the wing of a project.
    """
    facts, rooms, proposed = 0, 0, Counter[str]()
    for palace in palaces:
        facts += Fact.objects.within(palace).active().count()
        rooms += dream(palace, with_model=False).rooms
        proposed.update(Proposal.objects.within(palace).values_list("kind", flat=True))
    return {"facts": facts, "proposed": dict(proposed), "rooms": rooms}


def _shown(palace: Palace, room: Room) -> dict[str, Any]:
    drawers = list(Drawer.objects.within(palace).filter(room=room).select_related("closet"))
    speakers = frozenset(drawer.speaker for drawer in drawers if drawer.speaker)
    return {
        "conversation": room.external_id,
        "wing": room.wing.name,
        "kind": room.wing.kind,
        "title": room.title,
        "topics": list(dict.fromkeys(d.closet.title for d in drawers if d.closet)),
        "drawers": [
            {
                "id": drawer.external_id,
                "text": drawer.text[:300],
                "tags": drawer.tags,
                "beyond": _says_more(drawer, speakers),
            }
            for drawer in drawers
        ],
    }


def _says_more(drawer: Drawer, speakers: frozenset[str]) -> bool:
    """Whether it is tagged with more than who takes part in the conversation."""
    names = {name for tagged in drawer.tags.values() for name in tagged}
    return bool(names - speakers)


def _summary(filed: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of all rooms.

    `tagged` is the share of messages with any tag, `tagged_beyond_speakers` with one that is no
    speaker's name, by letter in `letters`; `in_largest_wing` the share of rooms in the wing that
    holds most of their case.
    """
    drawers = [drawer for room in filed for drawer in room["drawers"]]
    by_case: dict[str, Counter[str]] = {}
    for room in filed:
        by_case.setdefault(room["case"], Counter())[room["wing"]] += 1
    largest = sum(counts.most_common(1)[0][1] for counts in by_case.values())
    return {
        "cases": len(by_case),
        "rooms": len(filed),
        "messages": len(drawers),
        "wings": {name: dict(counts.most_common()) for name, counts in by_case.items()},
        "wing_kinds": dict(Counter(room["kind"] for room in filed)),
        "in_largest_wing": share(largest, len(filed)),
        "tagged": share(sum(bool(d["tags"]) for d in drawers), len(drawers)),
        "tagged_beyond_speakers": share(sum(d["beyond"] for d in drawers), len(drawers)),
        "letters": dict(Counter(letter for d in drawers for letter in d["tags"])),
    }
