"""`manage.py find_secrets`: tag messages that were stored before secrets were noticed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from config.management.base import LociCommand
from isolation import row_access
from llm.secrets_in_text import TAG, secret_tags
from palace.models import Drawer

BATCH = 500


class Command(LociCommand):
    help = (
        "Tag messages that hold secrets or card numbers, as mining does with new ones. May be "
        "stopped, and go on with --after."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--after", type=int, default=0, help="Go on after this number.")

    @row_access.sweep("secrets")
    def handle(self, *, after: int, **options: Any) -> None:
        tagged = 0
        while drawers := list(_next(after)):
            tagged, after = tagged + sum(map(_tag, drawers)), drawers[-1].pk
            self.stderr.write(f"Read up to {after}; go on with --after {after}.", style_func=str)
        self.stdout.write(f"Done: {tagged} messages were newly tagged.")


def _next(after: int) -> Any:
    mined = Drawer.objects.exclude(mined_at=None).filter(pk__gt=after).order_by("pk")
    return mined.only("pk", "text", "tags", "palace_id")[:BATCH]


def _tag(drawer: Drawer) -> bool:
    """Whether tags were added; a message that was mined again meanwhile has them already."""
    others = {letter: names for letter, names in drawer.tags.items() if letter != TAG}
    tags = others | secret_tags(drawer.text)
    read = Drawer.objects.filter(palace=drawer.palace_id, pk=drawer.pk, tags=drawer.tags)
    return bool(tags != drawer.tags and read.update(tags=tags))
