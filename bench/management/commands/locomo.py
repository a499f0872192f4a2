from __future__ import annotations

from bench.asked_again import AskedAgainCommand
from bench.datasets.long_chats import load_locomo


class Command(AskedAgainCommand):
    dataset = "locomo"
    load = staticmethod(load_locomo)
