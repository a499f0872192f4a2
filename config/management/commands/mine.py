"""`manage.py mine`: mine by hand what was filed and is not mined yet."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from tqdm import tqdm

from config.management.base import PalaceCommand, add_user_argument, palace_of
from palace.knowledge.episodes import write_due_episodes
from palace.knowledge.facts import learn_unread
from palace.mining.pipeline import mine_room
from palace.models import Drawer, Room
from palace.storage.indexing import postings


class Command(PalaceCommand):
    help = (
        "Mine the conversations that were filed and wait, and learn their facts, as the worker"
        " does by itself."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_user_argument(parser)

    def handle(self, *, user: str, subject: str, **options: Any) -> None:
        palace = palace_of(user, subject)
        waiting = Drawer.objects.within(palace).unmined().values("room")
        rooms = Room.objects.within(palace).filter(pk__in=waiting).select_related("palace", "wing")
        drawers = 0
        for room in tqdm(list(rooms.order_by("number")), unit="room", disable=None):
            drawers += mine_room(room).made["drawers"]
        if postings.needs_compaction(palace):
            postings.compact(palace)
        learn_unread(palace)
        write_due_episodes(palace)
        self.stdout.write(f"Mined {drawers} messages.")
