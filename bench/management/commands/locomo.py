from __future__ import annotations

from bench.command import BenchmarkCommand
from bench.datasets import locomo


class Command(BenchmarkCommand):
    dataset = "locomo"
    load = staticmethod(locomo.load)
