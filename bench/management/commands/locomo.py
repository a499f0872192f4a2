from __future__ import annotations

from bench.asked_again import AskedAgainCommand
from bench.datasets import locomo


class Command(AskedAgainCommand):
    dataset = "locomo"
    load = staticmethod(locomo.load)
