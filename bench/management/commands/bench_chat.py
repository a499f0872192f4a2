"""`manage.py bench_chat`: the first word of a reply, beside the bare model's."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.utils import timezone
from tqdm import tqdm

from bench.first_token import MODEL, ChatUser, bare_first_word_ms, played_model, web_server
from bench.furnish import questions
from bench.metrics import percentile
from bench.sample import conversations
from bench.schema import own_schema
from chat.models import Conversation
from palace.models import Drawer, Palace
from palace.pipeline import mine_many
from settings_app.models import MemorySettings


class Command(BaseCommand):
    help = (
        "Measure the time to the first streamed word through the chat's own door, in turns with "
        "the same model asked directly. One JSON line on standard output."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--drawers", type=int, default=3000, help="In the palace.")
        parser.add_argument("--turns", type=int, default=40)
        parser.add_argument("--thinks-ms", type=float, default=0, help="Before the first word.")
        parser.add_argument("--keep", action="store_true", help="Keep the palace for next time.")

    def handle(
        self, *, drawers: int, turns: int, thinks_ms: float, keep: bool, **options: Any
    ) -> None:
        data = f"{drawers} drawers"
        with own_schema("bench_chat", keep=keep, data=data), played_model(thinks_ms / 1000) as url:
            user = _resident(drawers, url)
            with web_server() as address:
                bare, loci = self._measure(user, address, url, drawers, turns)
        report: dict[str, Any] = {"drawers": drawers, "turns": turns, "thinks_ms": thinks_ms}
        for name, times in (("bare", bare), ("loci", loci)):
            report[f"{name}_p50_ms"] = round(percentile(times, 0.5), 1)
            report[f"{name}_p95_ms"] = round(percentile(times, 0.95), 1)
        self.stdout.write(json.dumps(report))

    def _measure(
        self, user: User, address: tuple[str, int], url: str, drawers: int, turns: int
    ) -> tuple[list[float], list[float]]:
        """In turns, so that a machine that slows down slows both alike; the first is to warm up."""
        talker, palace = ChatUser(user, address), Palace.objects.own(user)
        bare, loci = [], []
        generated_questions = questions(list(conversations(drawers)))
        for text in tqdm(list(islice(generated_questions, turns + 1)), unit="turn", disable=None):
            conversation = Conversation.objects.create(
                palace=palace, title=text, spoke_at=timezone.now()
            )
            bare.append(bare_first_word_ms(url, text))
            loci.append(talker.first_word_ms(conversation, text))
        return bare[1:], loci[1:]


def _resident(drawers: int, url: str) -> User:
    """Somebody with a palace, whose model is the one played here, and who mines by hand."""
    user, _ = User.objects.get_or_create(username="resident")
    palace = Palace.objects.own(user)
    if not Drawer.objects.within(palace).exists():
        transcripts = conversations(drawers)
        mine_many(palace, tqdm(transcripts, desc="Furnishing", leave=False, disable=None))
    values = {"provider": url, "model": MODEL, "auto_mine": False}
    MemorySettings.objects.update_or_create(owner=user, defaults=values)
    return user
