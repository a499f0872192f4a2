"""A reply while it is being written: its pieces in Redis, for every tab that looks.

The writing process sends a heartbeat every few seconds. A reader that finds a reply without one
ends it with the text there is.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import redis
import redis.asyncio
from django.conf import settings

# How long pieces are kept after the last one; by then the whole text is in the database.
KEPT_S = 600
BEAT_S = 3
# A process without a heartbeat for this long is taken for dead.
GONE_S = 12
# After waiting this long, a reader checks whether the writer is still alive.
PATIENCE_MS = 2000

# Kinds of news: memories were chosen, text came, it is over.
RECALLED, TEXT, OVER = "recalled", "text", "over"

# The id of a stream entry, and its fields.
Entry = tuple[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class News:
    """The text so far; unchanged if nothing came while waiting.

    Attributes:
        text: All there is of the reply so far.
        grown: Whether some of that is new.
    """

    text: str
    grown: bool = False
    recalled: bool = False
    over: bool = False


class Writer:
    """The heartbeat of this process, which shows readers that it is alive."""

    def __init__(self) -> None:
        self.uuid = uuid.uuid4()
        self._lock = threading.Lock()
        self._beating: threading.Thread | None = None

    def sign_on(self) -> uuid.UUID:
        """Start the heartbeat of this process.

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
    """Whether that process still writes; true if it cannot be known yet.

    Raises:
        redis.RedisError: Redis is away.
    """
    if writer_uuid is None:
        return False
    if writer_uuid == _writer().uuid or _redis().exists(_writer_key(writer_uuid)):
        return True
    # A Redis that has just started may have lost the heartbeats.
    return int(_redis().info("server")["uptime_in_seconds"]) < GONE_S


def publish(reply: uuid.UUID, kind: str) -> None:
    """Send an entry to every open tab."""
    _add(reply, kind)


def publish_text(reply: uuid.UUID, text: str, sent: int) -> bool:
    """Send the rest of the text to every open tab.

    Args:
        text: All of it.
        sent: How many characters were sent before.

    Returns: whether to go on; False once the user pressed stop.
    """
    length, stopped = _add(reply, TEXT, text[sent:], at=sent)
    if sent and length == 1:
        # Redis was restarted and has lost what was sent.
        _add(reply, TEXT, text)
    return not stopped


def ask_to_stop(reply: uuid.UUID) -> None:
    _redis().set(_stop_key(reply), 1, ex=KEPT_S)


def forget(reply: uuid.UUID) -> None:
    """Delete its entries: no tab needs them any more."""
    _redis().unlink(_key(reply), _stop_key(reply))


def text_so_far(reply: uuid.UUID) -> str:
    return _read("", cast(list[Entry], _redis().xrange(_key(reply)))).text


async def follow(reply: uuid.UUID) -> AsyncGenerator[News]:
    """All news from the beginning, as they come. The caller ends it.

    Raises:
        redis.RedisError: Redis is away, or goes away.
    """
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, decode_responses=True)
    last, text = "0", ""
    async with aclosing(client):
        while True:
            found: Any = await client.xread({_key(reply): last}, block=PATIENCE_MS)
            entries: list[Entry] = found[0][1] if found else []
            if entries:
                last = entries[-1][0]
            news = _read(text, entries)
            text = news.text
            yield news


def _add(reply: uuid.UUID, kind: str, text: str = "", *, at: int = 0) -> tuple[int, bool]:
    """Add an entry; return how many there are, and whether the user pressed stop.

    Args:
        at: How many characters of the reply come before `text`.
    """
    with _redis().pipeline(transaction=False) as pipe:
        pipe.xadd(_key(reply), {"kind": kind, "text": text, "at": at})
        pipe.xlen(_key(reply))
        pipe.expire(_key(reply), KEPT_S)
        pipe.exists(_stop_key(reply))
        _, length, _, stopped = pipe.execute()
    return length, bool(stopped)


def _read(text: str, entries: Iterable[Entry]) -> News:
    """Add entries to the text. An entry may come twice, or the text from its start again."""
    kinds: set[str] = set()
    parts, length = [text], len(text)
    for _, fields in entries:
        kinds.add(fields["kind"])
        if fields["kind"] == TEXT:
            if (at := int(fields["at"])) != length:
                parts = ["".join(parts)[:at]]
            parts.append(fields["text"])
            length = at + len(fields["text"])
    return News("".join(parts), TEXT in kinds, RECALLED in kinds, OVER in kinds)


@cache
def _writer() -> Writer:
    return Writer()


@cache
def _redis() -> redis.Redis:
    most_s = settings.REDIS_TIMEOUT_S
    return redis.Redis.from_url(settings.REDIS_URL, decode_responses=True, socket_timeout=most_s)


def _key(reply: uuid.UUID) -> str:
    return f"loci:reply:{reply}"


def _stop_key(reply: uuid.UUID) -> str:
    return f"loci:reply:{reply}:stop"


def _writer_key(writer_uuid: uuid.UUID) -> str:
    return f"loci:writer:{writer_uuid}"
