"""What is done every few seconds, mostly for nothing, is not worth four lines each time."""

from __future__ import annotations

import logging

OFTEN = ("palace.tasks.deliver_webhooks",)


class Quiet(logging.Filter):
    """Keeps out what clock and worker say of such tasks, unless something went wrong."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.INFO or not record.name.startswith("celery"):
            return True
        message = record.getMessage()
        return not any(task in message for task in OFTEN)
