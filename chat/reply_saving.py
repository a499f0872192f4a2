"""Half a reply is stored while it is written: it outlives its process, and Redis.

A thread of its own stores it, because the one that writes waits for the model, which may fall
silent for a minute.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError, connection

from chat.models import Message
from isolation import row_access
from isolation.row_access import Access

# Seconds between two writes to the database, and after one that failed.
SAVE_EVERY_S, SAVE_PAUSE_S = 1, 30

logger = logging.getLogger(__name__)


@contextmanager
def saved_every_second(reply: Message, text_so_far: Callable[[], str]) -> Iterator[None]:
    """Within the block, what there is of the reply is stored once a second, if it has grown."""
    over = threading.Event()
    saver = threading.Thread(
        target=_save,
        args=[reply, text_so_far, row_access.current(), over],
        daemon=True,
        name=f"saver of reply {reply.pk}",
    )
    saver.start()
    try:
        yield
    finally:
        over.set()
        saver.join()


def _save(
    reply: Message, text_so_far: Callable[[], str], at: Access, over: threading.Event
) -> None:
    saved, pause_s = "", SAVE_EVERY_S
    with row_access.use(at):
        while not over.wait(pause_s):
            if (text := text_so_far()) == saved:
                continue
            if _is_stored(reply, text):
                saved, pause_s = text, SAVE_EVERY_S
            else:
                pause_s = SAVE_PAUSE_S


def _is_stored(reply: Message, text: str) -> bool:
    """Store it; False if the database is away."""
    being_written = Message.objects.filter(
        palace=reply.palace_id, pk=reply.pk, writer=reply.writer, status=Message.Status.WRITING
    )
    try:
        being_written.update(text=text)
    except (OperationalError, InterfaceError) as error:
        logger.warning("Half a reply is not stored: the database is away (%s).", error)
        return False
    finally:
        connection.close()
    return True
