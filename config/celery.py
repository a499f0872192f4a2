"""The task queue: Celery on Redis. Tasks are safe to repeat, so they are acknowledged late."""

from __future__ import annotations

import logging
import os
import warnings

from celery import Celery

# Tasks that run so often that their log lines would hide the others.
OFTEN = ("palace.tasks.deliver_webhooks",)

# Celery warns of root because pickled messages can run code. Ours are JSON.
warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("loci")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


class Quiet(logging.Filter):
    """Filters the scheduler's and worker's lines about such tasks, except for errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.INFO or not record.name.startswith("celery"):
            return True
        message = record.getMessage()
        return not any(task in message for task in OFTEN)
