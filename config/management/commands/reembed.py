"""`manage.py reembed`: switch to the embedding model the settings name, while recall goes on."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from config.management.base import LociCommand
from isolation import row_access
from language.errors import VectorStoreAway
from llm.embedding import deployment_model
from llm.errors import LLMError
from palace.models import EmbeddingSpace
from palace.storage import build_space, drawers_lacking, reembed, switch_to_space
from palace.storage.indexing.spaces import active_space, space_for


class Command(LociCommand):
    help = (
        "Embed every palace again with the model that LOCI_EMBEDDING_* name. Recall answers from "
        "the old model until all is done. May be stopped and called again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--background", action="store_true", help="Leave the work to the running worker."
        )

    @row_access.sweep("vectors")
    def handle(self, *, background: bool, **options: Any) -> None:
        space = space_for(deployment_model())
        missing = drawers_lacking(space)
        if space == active_space() and not missing:
            self.stdout.write(f"Everything is embedded with {space} already.")
            return
        if background:
            reembed.delay(space.pk)
            self.stdout.write(f"Queued: {missing} drawers to embed with {space}.")
            return
        self._build(space, missing)
        self.stdout.write(f"Done: recall now searches {space}. Restart Loci if it is running.")

    def _build(self, space: EmbeddingSpace, missing: int) -> None:
        try:
            with tqdm(total=missing, unit="drawer", disable=None) as bar:
                for done in build_space(space):
                    bar.update(done)
            switch_to_space(space)
        except (LLMError, VectorStoreAway) as error:
            raise CommandError(
                f"{error} What was done so far is kept; run the command again to go on."
            ) from error
