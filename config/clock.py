"""The clock: `celery -A config.clock beat` puts the tasks of the timetable into the queue.

It knows them by name only. With the tasks and all that they import its start took five times the
processor time, and it kept 120 MB more. Its scheduler allows for a clock that is set while it runs.
"""

from __future__ import annotations

import time
from typing import Any

from celery import Celery
from celery.beat import PersistentScheduler
from celery.loaders.app import AppLoader
from django.conf import settings
from django.utils.log import configure_logging

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


class WithoutTasks(AppLoader):
    def import_default_modules(self) -> list[Any]:
        """Instead of setting Django up and importing its apps: of that only the log is needed."""
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        return []


app = Celery("loci", loader=WithoutTasks, fixups=[], set_as_current=False)
app.config_from_object("django.conf:settings", namespace="CELERY")
