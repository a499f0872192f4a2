"""Background tasks of the whole installation."""

from __future__ import annotations

import logging

from celery import shared_task

from config.backup.dump import back_up_by_the_clock
from config.backup.tools import BackupError
from palace.models.locks import held_if_free

logger = logging.getLogger(__name__)

# A task that has waited longer in the queue is dropped; the next one makes the backup.
WAITS_S = 6 * 3600


@shared_task(expires=WAITS_S, reject_on_worker_lost=False)
def back_up() -> None:
    """Write a backup, unless another worker is writing one. A kill leaves no complete file."""
    with held_if_free("back up") as ours:
        if not ours:
            return
        try:
            done = back_up_by_the_clock()
        except (BackupError, OSError) as error:
            logger.error("There is no new backup: %s", error)  # noqa: TRY400 - the sentence says it.
        else:
            logger.info("Backed up: %s, %s bytes.", done.file, done.size)
