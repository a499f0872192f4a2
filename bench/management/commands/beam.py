from __future__ import annotations

from bench.asked_again import AskedAgainCommand
from bench.datasets import beam


class Command(AskedAgainCommand):
    dataset = "beam"
    load = staticmethod(beam.load)
