"""The scripted model server, which `manage.py fire` uses too, under the name that tests know."""

from __future__ import annotations

from bench.model_server import (
    CHAT,
    EMBEDDINGS,
    NO_CHOICES,
    RETRY_AFTER_S,
    CutOff,
    Json,
    ModelServer,
    NotJson,
    Request,
    Slow,
    Stalled,
    Status,
    Text,
    embedding_of,
)

__all__ = [
    "CHAT",
    "EMBEDDINGS",
    "NO_CHOICES",
    "RETRY_AFTER_S",
    "CutOff",
    "Json",
    "ModelServer",
    "NotJson",
    "Request",
    "Slow",
    "Stalled",
    "Status",
    "Text",
    "embedding_of",
]
