"""Talking: agents, conversations, replies. Recall comes before each reply, mining after."""

from __future__ import annotations

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "chat"
