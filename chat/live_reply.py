"""A reply while it is written: its pieces in Redis for every tab, its row, and its end.

The writing process sends a heartbeat every few seconds. Half a reply outlives its process, and
Redis. A thread of its own stores it, because the one that writes waits for the model, which may
fall silent for a minute. It ends by its writer, by a stop, by a reader that finds the writer gone,
or with its palace.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any, cast

import redis
import redis.asyncio
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from chat import mining_queue
from chat.models import Conversation, Message
from isolation import row_access
from isolation.row_access import Access
from palace.models import Palace

logger = logging.getLogger(__name__)

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
INTERRUPTED = "The server was stopped while this was being written. Try again."
# Seconds between two writes to the database, and after one that failed.
SAVE_EVERY_S, SAVE_PAUSE_S = 1, 30


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


def publish_entry(reply: uuid.UUID, kind: str) -> None:
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


def delete_entries(reply: uuid.UUID) -> None:
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


def finish(reply: Message, **values: Any) -> bool:
    """End the reply as its writer, unless it was stopped. Returns whether we did.

    A reader that took the writer for gone is overruled.
    """
    return _end(reply, Q(writer=reply.writer), {**values, "writer": None})


def stop(reply: Message) -> bool:
    """Stop the reply with the text so far.

    Raises:
        redis.RedisError: Redis is away, so nobody can be asked to stop.
    """
    ask_to_stop(reply.uuid)
    text = _text_so_far(reply)
    values = {"status": Message.Status.STOPPED, "text": text, "writer": None}
    return _end(reply, Q(status=Message.Status.WRITING), values)


def end_if_abandoned(reply: Message) -> bool:
    """End the reply if its writer is gone; returns whether it is.

    Raises:
        redis.RedisError: Redis is away, so it is unknown.
    """
    return not is_alive(reply.writer) and end_as_abandoned(reply)


def end_as_abandoned(reply: Message) -> bool:
    """End the reply with the text so far. A writer that lives after all may still `finish()`."""
    text = _text_so_far(reply)
    values = {"status": Message.Status.FAILED, "text": text, "note": INTERRUPTED}
    return _end(reply, Q(status=Message.Status.WRITING), values)


def _text_so_far(reply: Message) -> str:
    """The longer of the texts in Redis, which may have lost some, and in the database."""
    stored = Message.objects.filter(palace=reply.palace_id, pk=reply.pk)
    texts = [text_so_far(reply.uuid), *stored.values_list("text", flat=True)]
    return max(texts, key=len)


def end_abandoned(conversation: Conversation) -> None:
    """End the conversation's reply if its writer is gone; where that is unknown, leave it."""
    reply = writing_in(conversation)
    if reply is None:
        return
    try:
        end_if_abandoned(reply)
    except redis.RedisError as error:
        logger.warning("A reply cannot be looked after: Redis does not answer (%s).", error)


def writing_in(conversation: Conversation) -> Message | None:
    """The conversation's unfinished reply, if there is one."""
    messages = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    reply = messages.filter(status=Message.Status.WRITING).first()
    if reply is not None:
        reply.conversation = conversation
    return reply


def cancel(reply: Message) -> None:
    """Ask the writer of a deleted reply to stop; an error of Redis is logged."""
    try:
        ask_to_stop(reply.uuid)
    except redis.RedisError as error:
        logger.warning("Nobody can be asked to stop: Redis does not answer (%s).", error)


def publish(reply: Message, kind: str) -> None:
    """`publish_entry`; an error of Redis is logged: the database has everything."""
    try:
        publish_entry(reply.uuid, kind)
    except redis.RedisError as error:
        logger.warning("A reply is written unseen: Redis does not answer (%s).", error)


def forget(reply: uuid.UUID) -> None:
    """`delete_entries`; if Redis is away, the entries expire within minutes."""
    try:
        delete_entries(reply)
    except redis.RedisError as error:
        logger.warning("A deleted reply is kept for minutes: Redis does not answer (%s).", error)


def _end(reply: Message, ours: Q, values: dict[str, Any]) -> bool:
    """End the reply, unless it has ended or is deleted; then notify every open tab."""
    now = timezone.now()
    try:
        with transaction.atomic():
            reply.conversation.lock()
            messages = Message.objects.filter(ours, palace=reply.palace_id, pk=reply.pk)
            if not messages.update(said_at=now, **values):
                return False
            mining_queue.mark_due(reply.conversation, now)
    except Conversation.DoesNotExist:
        forget(reply.uuid)
        return False
    publish(reply, OVER)
    return True


def forget_replies_of(palace: Palace) -> None:
    """Drop the latest replies of a palace that is being deleted from Redis."""
    lately = Q(said_at__gte=timezone.now() - timedelta(seconds=KEPT_S))
    writing = Q(status=Message.Status.WRITING)
    replies = Message.objects.filter(lately | writing, palace=palace, role="assistant")
    transaction.on_commit(partial(_forget, list(replies.order_by())))


def _forget(replies: list[Message]) -> None:
    for reply in replies:
        forget(reply.uuid)
        if reply.is_writing:
            cancel(reply)  # Drops what the writer has published since.


@contextmanager
def saved_every_second(reply: Message, text_so_far: Callable[[], str]) -> Iterator[None]:
    """Within the block, a growing reply is stored once a second."""
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
