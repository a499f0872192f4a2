"""`manage.py find_secrets`: tag messages that were stored before secrets were noticed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from isolation import row_access
from llm.secrets_in_text import TAG, secret_tags
from palace.models import Drawer
from settings_app.command_base import LociCommand

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
            changed = [drawer for drawer in drawers if _tag(drawer)]
            Drawer.objects.bulk_update(changed, ["tags"])
            tagged, after = tagged + len(changed), drawers[-1].pk
            self.stderr.write(f"Read up to {after}; go on with --after {after}.", style_func=str)
        self.stdout.write(f"Done: {tagged} messages were tagged anew.")


def _next(after: int) -> Any:
    mined = Drawer.objects.exclude(mined_at=None).filter(pk__gt=after).order_by("pk")
    return mined.only("pk", "text", "tags", "palace_id")[:BATCH]


def _tag(drawer: Drawer) -> bool:
    """Whether its tags have changed."""
    others = {letter: names for letter, names in drawer.tags.items() if letter != TAG}
    before, drawer.tags = drawer.tags, others | secret_tags(drawer.text)
    return bool(before != drawer.tags)
