"""Before anything starts: can the models work as they are set? Nobody is called to find out."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from llm import embedding, providers
from llm.errors import EmbedderMisconfigured, ModelRefused


@register
def check_embedding_model(**_options: Any) -> list[CheckMessage]:
    try:
        embedding.check(embedding.deployment_model())
    except EmbedderMisconfigured as error:
        return [Error(str(error), id="llm.E001")]
    return []


@register
def check_chat_model(**_options: Any) -> list[CheckMessage]:
    try:
        providers.deployment_endpoint()
    except ModelRefused as error:
        return [Error(str(error), id="llm.E002")]
    return []
