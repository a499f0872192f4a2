"""Silence the log lines of frequent periodic tasks."""

from __future__ import annotations

import logging

OFTEN = ("palace.tasks.deliver_webhooks",)


class Quiet(logging.Filter):
    """Filters the scheduler's and worker's lines about such tasks, except for errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.INFO or not record.name.startswith("celery"):
            return True
        message = record.getMessage()
        return not any(task in message for task in OFTEN)
