"""Talking: agents, conversations, replies. Recall comes before each reply, mining after."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"

    def ready(self) -> None:
        import_module("chat.reply_ending").forget_with_palaces()
