"""Celery's scheduler for a machine whose clock may be set while it runs."""

from __future__ import annotations

import time
from typing import Any

from celery.beat import PersistentScheduler

# A difference that no correction in small steps makes between two looks.
MOVED_S = 2


class Scheduler(PersistentScheduler):
    """Rebuilds its plan after the clock was moved.

    Celery plans by the wall clock. One that is set back makes it wait until the planned moments
    come again: two hours, for a clock that was two hours ahead.
    """

    # It looks at the clock so often; Celery alone would look every five minutes.
    max_interval = 5

    # By how much the wall clock is ahead of the one that only measures.
    _ahead_s: float | None = None

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Queue one task if it is due; the seconds until the next is."""
        ahead_s = time.time() - time.monotonic()
        if self._ahead_s is None or abs(ahead_s - self._ahead_s) > MOVED_S:
            self._rebuild_plan()
        self._ahead_s = ahead_s
        seconds: float = super().tick(*args, **kwargs)
        return seconds

    def _rebuild_plan(self) -> None:
        for entry in self.schedule.values():
            now = entry.default_now()
            # A last run that lies ahead was dated, and perhaps stored, by the clock of then.
            entry.last_run_at = min(entry.last_run_at or now, now)
        # Celery builds it from the entries when there is none.
        self._heap = None
