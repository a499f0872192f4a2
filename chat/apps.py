"""The chat: agents, conversations, replies. Recall comes before each reply, mining after."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        pre_delete.connect(_forget_replies, sender="palace.Palace", dispatch_uid="replies")


def _forget_replies(instance: Any, **_: Any) -> None:
    # Imported on use: it imports much of the palace, and few processes delete one.
    import_module("chat.live_reply").forget_replies_of(instance)
