"""System checks of the model settings. No provider is called; only the local reranker is tried."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from llm import embedding, providers, reranking
from llm.errors import EmbedderMisconfigured, ModelRefused, RerankerMisconfigured

TAG = "models_in_use"


@register(TAG)
def check_embedding_model(**_options: Any) -> list[CheckMessage]:
    try:
        embedding.check(embedding.deployment_model())
    except EmbedderMisconfigured as error:
        return [Error(str(error), id="llm.E001")]
    return []


@register(TAG)
def check_chat_model(**_options: Any) -> list[CheckMessage]:
    try:
        providers.deployment_endpoint()
    except ModelRefused as error:
        return [Error(str(error), id="llm.E002")]
    return []


@register(TAG)
def check_reranker(**_options: Any) -> list[CheckMessage]:
    folder = reranking.deployment_reranker()
    if folder is None:
        return []
    try:
        reranking.check(folder)
    except RerankerMisconfigured as error:
        return [Error(str(error), id="llm.E003")]
    return []
