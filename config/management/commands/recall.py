"""`manage.py recall "question"`: what is found, why, and the block a model would be given."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError

from config.management.base import PalaceCommand, add_user_argument, palace_of
from language.errors import PalaceError
from palace.recall import (
    Hit,
    RecalledFact,
    RecallRequest,
    RecipeGiven,
    Recollection,
    describe_move,
    recall,
)

SNIPPET = 160
# A full bar stands for this share of the score.
BAR, BAR_WIDTH = 4.0, 12


class Command(PalaceCommand):
    help = "Ask the palace: hits with their signals, and the context block."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("question")
        add_user_argument(parser)
        parser.add_argument(
            "--top-k", type=int, metavar="N", help="How many; the user's own choice unless given."
        )
        parser.add_argument(
            "--recipe",
            metavar="NAME",
            type=_recipe,
            help="A recipe's name, or a JSON list of stages; the user's own choice unless given.",
        )
        parser.add_argument(
            "--now", type=_moment, help="ISO date or time the question is asked at."
        )
        parser.add_argument("--as-of", type=_moment, help="Leave out what was said later.")
        parser.add_argument("--budget", type=int, metavar="TOKENS", help="Of the context block.")
        parser.add_argument(
            "--rerank",
            action=BooleanOptionalAction,
            help="Whether a model puts the best in order; the user's own choice unless given.",
        )
        parser.add_argument("--json", action="store_true", help="For programs.")
        parser.add_argument(
            "--brief", action="store_true", help="Only what was said, by whom and where."
        )

    def handle(self, *, question: str, user: str, subject: str, **options: Any) -> None:
        try:
            found = recall(
                palace_of(user, subject),
                RecallRequest(
                    question,
                    top_k=options["top_k"],
                    now=options["now"],
                    as_of=options["as_of"],
                    recipe=options["recipe"],
                    budget_tokens=options["budget"],
                    rerank=options["rerank"],
                    with_facts=True,
                ),
            )
        except PalaceError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(as_json(found), ensure_ascii=False))
        elif options["brief"]:
            self._show_briefly(found)
        else:
            self._show(found)

    def _show_briefly(self, found: Recollection) -> None:
        for hit in found.hits:
            drawer, (start, end) = hit.drawer, hit.passage
            where = f"{drawer.room.wing.name} › {drawer.room.title}"
            self.stdout.write(f"“{' '.join(drawer.text[start:end].split())}”")
            self.stdout.write(
                f"  {drawer.speaker or drawer.role}, {drawer.said_at:%d %b %Y}, {where} "
                f"[{hit.pointer}]\n"
            )
        if not found.hits:
            self.stdout.write("Nothing in your palace is close to this.")
        for note in found.notes:
            self.stderr.write(note)

    def _show(self, found: Recollection) -> None:
        for place, hit in enumerate(found.hits, start=1):
            self._show_hit(place, hit)
        for note in found.notes:
            self.stdout.write(self.style.WARNING(note))
        if found.context:
            self.stdout.write(f"{found.context}\n({found.context_tokens} tokens)")
        else:
            self.stdout.write("Nothing close: a model would be given no block.")
        self.stdout.write(f"{found.duration_ms:.0f} ms · recollection {found.uuid}")

    def _show_hit(self, place: int, hit: Hit) -> None:
        drawer, (start, end) = hit.drawer, hit.passage
        who = drawer.speaker or drawer.role
        self.stdout.write(
            self.style.MIGRATE_HEADING(
                f"{place}. {hit.pointer}  {drawer.said_at:%d %b %Y}  {who}  score {hit.score:.2f}"
            )
        )
        room = drawer.room
        self.stdout.write(f"   {room.wing.name} › {room.title}")
        self.stdout.write(f"   “{' '.join(drawer.text[start:end].split())[:SNIPPET]}”")
        if hit.note:
            self.stdout.write(f"   ({hit.note})")
        for name, share in hit.signals.items():
            if abs(share) >= 0.005:
                bar = "█" * min(round(abs(share) / BAR * BAR_WIDTH), BAR_WIDTH)
                self.stdout.write(f"   {name:<11}{share:+6.2f} {bar}")
        if hit.place_before is not None:
            self.stdout.write(f"   {describe_move(hit.place_before, place)}")
        self.stdout.write("")


def as_json(found: Recollection) -> dict[str, Any]:
    return {
        "recollection": str(found.uuid),
        "query": found.query,
        "hits": [_hit_as_json(hit) for hit in found.hits],
        "facts": [_fact_as_json(known) for known in found.facts],
        "context": found.context,
        "context_tokens": found.context_tokens,
        "notes": list(found.notes),
        "duration_ms": found.duration_ms,
    }


def _hit_as_json(hit: Hit) -> dict[str, Any]:
    return {
        "drawer": str(hit.drawer.uuid),
        "pointer": str(hit.pointer),
        "score": hit.score,
        "signals": dict(hit.signals),
        "place_before": hit.place_before,
        "said_at": hit.drawer.said_at.isoformat(),
        "speaker": hit.drawer.speaker,
        "role": hit.drawer.role,
        "text": hit.drawer.text,
        "passage": list(hit.passage),
        "outdated_since": hit.outdated.since.isoformat() if hit.outdated else None,
    }


def _fact_as_json(known: RecalledFact) -> dict[str, Any]:
    return {
        "memory": str(known.memory),
        "pointer": str(known.pointer) if known.pointer else None,
        "score": known.score,
        "text": known.text,
        "dates": known.dates,
    }


def _recipe(text: str) -> RecipeGiven:
    if not text.startswith("["):
        return text
    try:
        stages: list[Any] = json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"the stages are not JSON: {error}") from None
    return stages


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
