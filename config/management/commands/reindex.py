"""`manage.py reindex`: rebuild what is derived from drawers and facts, which stay as they are."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from config.management.base import PalaceCommand, add_user_argument, palace_of
from language.errors import VectorStoreAway
from llm.errors import LLMError
from palace.models import Drawer, Fact
from palace.storage import (
    count_fact_vectors,
    rebuild_fact_vectors,
    rebuild_passages,
    rebuild_postings,
)
from palace.storage.indexing.spaces import active_space


class Command(PalaceCommand):
    help = (
        "Rebuild a palace's postings and passages from its drawers, and the vectors of its facts, "
        "in the vector store that the settings name. Recall goes on meanwhile."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_user_argument(parser)
        parser.add_argument(
            "--only-facts", action="store_true", help="Leave postings and passages as they are."
        )

    def handle(self, *, user: str, subject: str, only_facts: bool, **options: Any) -> None:
        palace = palace_of(user, subject)
        drawers = Drawer.objects.within(palace).exclude(mined_at=None).count()
        facts = Fact.objects.within(palace).count()
        try:
            if not only_facts:
                rebuild_postings(palace)
                self._show(rebuild_passages(palace), drawers, "drawer")
            self._show(rebuild_fact_vectors(palace, active_space()), facts, "fact")
        except LLMError as error:
            raise CommandError(str(error)) from error
        except VectorStoreAway as error:
            raise CommandError(f"{error} It is at {error.where}.") from error
        missing = facts - count_fact_vectors(palace, active_space())
        done = f"{facts} facts" if only_facts else f"{drawers} drawers, {facts} facts"
        later = f" {missing} could not be embedded yet." if missing > 0 else ""
        self.stdout.write(f"Done: {done}.{later}")

    def _show(self, steps: Iterator[int], total: int, unit: str) -> None:
        with tqdm(total=total, unit=unit, disable=None) as bar:
            for done in steps:
                bar.update(done)
