from __future__ import annotations

from bench.asked_again import AskedAgainCommand
from bench.datasets.long_chats import load_beam


class Command(AskedAgainCommand):
    dataset = "beam"
    load = staticmethod(load_beam)
