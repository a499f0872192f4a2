"""A reply while it is being written: its pieces in Redis, for every tab that looks.

The process that writes says every few seconds that it lives. So whoever finds a reply that nobody
writes any more can tell, and end it with as much as there is.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import redis
import redis.asyncio
from django.conf import settings

# Pieces are kept so long after the last one; by then the whole text is in the database.
KEPT_S = 600
BEAT_S = 3
# A process that has not been heard for so long writes no more.
GONE_S = 12
# A reader that has waited so long looks whether there is still somebody writing.
PATIENCE_MS = 2000

# Kinds of news: memories were chosen, text came, it is over.
RECALLED, TEXT, OVER = "recalled", "text", "over"


@dataclass(frozen=True, slots=True)
class News:
    """What came at once: memories, text, the end; all False and empty after a wait in vain."""

    recalled: bool = False
    text: str = ""
    over: bool = False


class Writer:
    """This process, as one that writes replies."""

    def __init__(self) -> None:
        self.uuid = uuid.uuid4()
        self._lock = threading.Lock()
        self._beating: threading.Thread | None = None

    def sign_on(self) -> uuid.UUID:
        """From now on this process is known to live.

        Raises:
            redis.RedisError: Redis is away.
        """
        with self._lock:
            self._say_alive()
            if self._beating is None:
                self._beating = threading.Thread(target=self._beat, daemon=True, name="writer")
                self._beating.start()
        return self.uuid

    def _beat(self) -> None:
        pause = threading.Event()
        while not pause.wait(BEAT_S):
            try:
                self._say_alive()
            except redis.RedisError:
                continue  # It may be back at the next beat.

    def _say_alive(self) -> None:
        _redis().set(_writer_key(self.uuid), 1, ex=GONE_S)


def writer() -> Writer:
    return _writer()


def is_alive(writer_uuid: uuid.UUID | None) -> bool:
    return writer_uuid is not None and bool(_redis().exists(_writer_key(writer_uuid)))


def publish(reply: uuid.UUID, kind: str, text: str = "") -> bool:
    """Tell whoever looks. Returns whether to go on: False once somebody asked for a stop."""
    with _redis().pipeline(transaction=False) as pipe:
        pipe.xadd(_key(reply), {"kind": kind, "text": text})
        pipe.expire(_key(reply), KEPT_S)
        pipe.exists(_stop_key(reply))
        stopped: bool = pipe.execute()[-1]
    return not stopped


def ask_to_stop(reply: uuid.UUID) -> None:
    _redis().set(_stop_key(reply), 1, ex=KEPT_S)


def text_so_far(reply: uuid.UUID) -> str:
    entries = cast(list[Any], _redis().xrange(_key(reply)))
    return _read(entries).text


async def follow(reply: uuid.UUID) -> AsyncGenerator[News]:
    """All news from the beginning, as they come. The caller ends it."""
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, decode_responses=True)
    last = "0"
    async with aclosing(client):
        while True:
            found: Any = await client.xread({_key(reply): last}, block=PATIENCE_MS, count=1000)
            entries = found[0][1] if found else []
            if entries:
                last = entries[-1][0]
            yield _read(entries)


def _read(entries: Sequence[tuple[str, dict[str, str]]]) -> News:
    kinds = {fields["kind"] for _, fields in entries}
    text = "".join(fields["text"] for _, fields in entries)
    return News(RECALLED in kinds, text, OVER in kinds)


@cache
def _writer() -> Writer:
    return Writer()


@cache
def _redis() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, decode_responses=True)


def _key(reply: uuid.UUID) -> str:
    return f"loci:reply:{reply}"


def _stop_key(reply: uuid.UUID) -> str:
    return f"loci:reply:{reply}:stop"


def _writer_key(writer_uuid: uuid.UUID) -> str:
    return f"loci:writer:{writer_uuid}"
