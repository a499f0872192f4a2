"""Commands that measure: they make palaces and schemas of their own, and look from above."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from isolation import reach


class FromAbove(BaseCommand):
    """What is measured, recall and mining, opens its palace by itself, as everywhere."""

    def execute(self, *args: Any, **options: Any) -> Any:
        # Threads and processes that ask begin with nothing of their own.
        before = reach.current()
        reach.look_from_above()
        try:
            with reach.maintenance():
                return super().execute(*args, **options)
        finally:
            if before == reach.NOBODY:
                reach.look_from_nowhere()
