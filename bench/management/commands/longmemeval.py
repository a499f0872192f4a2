from __future__ import annotations

from bench.command import BenchmarkCommand
from bench.datasets import longmemeval


class Command(BenchmarkCommand):
    load = staticmethod(longmemeval.load)
