"""Asynchronous commits, and writes that a full disk refuses."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

# An SQL condition that is true, and lets the statement commit without waiting for the disk.
ASYNC_COMMIT = "set_config('synchronous_commit', 'off', true) = 'off'"

# What PostgreSQL says when its disk is full.
_DISK_FULL = "53100"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def commit_without_waiting() -> None:
    """Commit the current transaction, if it is the outermost, without waiting for the disk.

    Only for work that is repeated if a power cut loses it. It is never lost in part, and a later
    synchronous commit also flushes it. An enclosing transaction is left alone.
    """
    if len(connection.atomic_blocks) == 1:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")


def is_disk_full(error: BaseException) -> bool:
    """Whether a database's or the system's error says that nothing more can be written."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    # Django's error has the driver's as its cause.
    return getattr(error.__cause__, "sqlstate", None) == _DISK_FULL


@contextmanager
def put_off_on_full_disk(what: str) -> Iterator[None]:
    """End the block where the disk is full, without an error: a worker does its work later.

    Args:
        what: For the log, such as "Messages are mined".
    """
    try:
        yield
    except OperationalError as error:
        if not is_disk_full(error):
            raise
        logger.warning("%s later, because the disk is full: %s", what, error)
