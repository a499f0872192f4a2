"""Calls to chat models, embedders and rerankers; independent of palaces."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_delete


class LlmConfig(AppConfig):
    name = "llm"

    def ready(self) -> None:
        # Registers the system checks; imported here because they need the models.
        from llm import checks  # noqa: F401, PLC0415

        post_delete.connect(_forget_totals, settings.AUTH_USER_MODEL, dispatch_uid="totals")


def _forget_totals(instance: Any, **_: Any) -> None:
    from llm.usage import forget_totals  # noqa: PLC0415 - needs the models.

    transaction.on_commit(partial(forget_totals, instance.pk))
