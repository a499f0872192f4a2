"""`manage.py reindex`: rebuild what is derived from drawers; the drawers are not touched."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from llm.errors import LLMError
from palace.management.people import PalaceCommand, add_user_argument, palace_of
from palace.models import Drawer
from palace.storage import rebuild_passages, rebuild_postings


class Command(PalaceCommand):
    help = "Rebuild a palace's postings and passages from its drawers. Recall goes on meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_user_argument(parser)

    def handle(self, *, user: str, subject: str, **options: Any) -> None:
        palace = palace_of(user, subject)
        rebuild_postings(palace)
        drawers = Drawer.objects.within(palace).exclude(mined_at=None).count()
        try:
            with tqdm(total=drawers, unit="drawer", disable=None) as bar:
                for done in rebuild_passages(palace):
                    bar.update(done)
        except LLMError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Done: {drawers} drawers.")
