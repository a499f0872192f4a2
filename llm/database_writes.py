"""Asynchronous commits, writes that a full disk or a lock refuses, and a database that does not
answer.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context

from django.db import DatabaseError, OperationalError, connection

logger = logging.getLogger(__name__)

# An SQL condition that is true, and lets the statement commit without waiting for the disk.
ASYNC_COMMIT = "set_config('synchronous_commit', 'off', true) = 'off'"

# What PostgreSQL says when its disk is full.
_DISK_FULL = "53100"
# And of a lock that others have held for longer than `isolation.row_access.lock_wait` allows.
_LOCKED = "55P03"
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
    return sqlstate_of(error) == _DISK_FULL


def is_locked(error: BaseException) -> bool:
    """Whether a statement has waited for a lock for as long as it may."""
    return sqlstate_of(error) == _LOCKED


def sqlstate_of(error: BaseException) -> str | None:
    """The database's code of the error; None if it is not the database's."""
    # Django's error has the driver's as its cause.
    return getattr(error.__cause__, "sqlstate", None)


@contextmanager
def put_off(what: str) -> Iterator[None]:
    """End the block without an error where the disk is full or a lock is held for too long.

    For work that is done later, by a worker or with the next request.

    Args:
        what: For the log, such as "Messages are mined".
    """
    try:
        yield
    except OperationalError as error:
        if not is_disk_full(error) and not is_locked(error):
            raise
        logger.warning("%s later: %s", what, error)


ANSWERS_WITHIN_S = 3
# A question that has waited for so long may be lost with its connection: ask another.
_ASK_AGAIN_AFTER_S = 30

_lock = threading.Lock()
_asked: Future[bool] | None = None
_asked_at = 0.0


def database_answers() -> bool:
    """Whether it answers a question within three seconds.

    A server that is stopped, or behind a network that drops its packets, neither answers nor
    refuses, and a query would wait for it without end. So a thread asks, and the caller waits.
    Callers at the same time, and those after a question that still waits, share one.
    """
    global _asked, _asked_at
    now = time.monotonic()
    with _lock:
        if _asked is None or _asked.done() or now - _asked_at > _ASK_AGAIN_AFTER_S:
            _asked, _asked_at = Future(), now
            run = copy_context().run
            threading.Thread(target=run, args=(_ask, _asked), daemon=True).start()
        asked = _asked
    try:
        return asked.result(max(_asked_at + ANSWERS_WITHIN_S - now, 0))
    except TimeoutError:
        return False


def _ask(answer: Future[bool]) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        answer.set_result(True)
    except DatabaseError:
        answer.set_result(False)
    except BaseException as error:
        answer.set_exception(error)
        raise
    finally:
        connection.close()
