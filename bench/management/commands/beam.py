from __future__ import annotations

from bench.command import BenchmarkCommand
from bench.datasets import beam


class Command(BenchmarkCommand):
    dataset = "beam"
    load = staticmethod(beam.load)
