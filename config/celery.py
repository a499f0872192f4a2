"""The task queue: Celery on Redis. Tasks are safe to repeat, so they are acknowledged late."""

from __future__ import annotations

import os
import warnings
from typing import Any

from celery import Celery, Task

from isolation import reach

# Celery warns of root because pickled messages can run code. Ours are JSON.
warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


class UnknownTask(Task[Any, Any]):
    """A task begins with nothing within reach, and opens what it is about."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with reach.nobody():
            return super().__call__(*args, **kwargs)


app = Celery("loci", task_cls=UnknownTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
