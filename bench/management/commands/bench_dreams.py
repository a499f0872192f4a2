"""`manage.py bench_dreams`: what dreams find of what was planted, and what they make up."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from bench.planted_dreams import BadPlanting, Group, Measured, measure, plant, read, scripted_model
from bench.runs import UnrestrictedCommand, alone_in, drop_schema, own_schema
from palace.models import Palace
from settings_app.models import MemorySettings

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
