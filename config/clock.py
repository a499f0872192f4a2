"""The clock: `celery -A config.clock beat` puts the tasks of the timetable into the queue.

It knows them by name only. With the tasks and all that they import its start took five times the
processor time, and it kept 120 MB more.
"""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.loaders.app import AppLoader
from django.conf import settings
from django.utils.log import configure_logging


class WithoutTasks(AppLoader):
    def import_default_modules(self) -> list[Any]:
        """Instead of setting Django up and importing its apps: of that only the log is needed."""
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        return []


app = Celery("loci", loader=WithoutTasks, fixups=[], set_as_current=False)
app.config_from_object("django.conf:settings", namespace="CELERY")
