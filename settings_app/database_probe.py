"""Whether the database answers, found out in time.

A server that is stopped, or behind a network that drops its packets, neither answers nor refuses,
and a query would wait for it without end. So a thread asks, and the caller waits for seconds only.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from contextvars import copy_context

from django.db import DatabaseError, connection

ANSWERS_WITHIN_S = 3
# A question that has waited for so long may be lost with its connection: ask another.
_ASK_AGAIN_AFTER_S = 30

_lock = threading.Lock()
_asked: Future[bool] | None = None
_asked_at = 0.0


def database_answers() -> bool:
    """Callers at the same time, and those after a question that still waits, share one."""
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
