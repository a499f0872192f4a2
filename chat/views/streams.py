"""A reply for those who look on while it is written."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from uuid import UUID

import redis
from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string

from chat import live, reply_ending
from chat.markdown import render_markdown
from chat.models import Message
from chat.views.message_rows import row
from chat.views.messages import the_reply
from settings_app.pages import PageRequest, signed_in_page

logger = logging.getLogger(__name__)

# What streams in this process have at most, together. Two drawing at once would be no quicker,
# and everybody else's requests slower.
_connections = threading.BoundedSemaphore(10)
_drawing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drawing")

# Between two pictures of a growing reply; longer where drawing one takes long.
LEAST_PAUSE_S = 0.04
PAUSE_BY_DRAWING = 4


@signed_in_page
def reply_stream(request: PageRequest, uuid: UUID) -> HttpResponseBase:
    """Server-sent events: `recalled` and `text` as HTML for their places, `done` with the whole."""
    response = StreamingHttpResponse(
        _events(request, the_reply(request, uuid)), content_type="text/event-stream"
    )
    response.headers["X-Accel-Buffering"] = "no"  # Some proxies keep an answer until it is whole.
    return response


async def _events(request: PageRequest, reply: Message) -> AsyncIterator[str]:
    if reply.is_writing:
        await _let_go_of_connection()
        async with aclosing(_growth(request, reply)) as growth:
            try:
                async for event in growth:
                    yield event
            except redis.RedisError as error:
                logger.warning("A reply grows unseen: Redis does not answer (%s).", error)
                if await _still_writing(reply.pk):
                    return  # The browser will ask again.
    yield _event("done", await _drawn(request, reply.pk, "chat/_message.html"))


async def _growth(request: PageRequest, reply: Message) -> AsyncGenerator[str]:
    """What comes before the end."""
    async with aclosing(live.follow(reply.uuid)) as feed:
        async for news in feed:
            if news.recalled:
                yield _event("recalled", await _drawn(request, reply.pk, "chat/_remembered.html"))
            if news.over or not (news.grown or await _still_writing(reply.pk)):
                return
            if news.grown:
                started = time.perf_counter()
                yield _event("text", await _draw(news.text))
                drawing = time.perf_counter() - started
                await asyncio.sleep(max(LEAST_PAUSE_S, PAUSE_BY_DRAWING * drawing))
            else:
                yield ": still being written\n\n"


async def _draw(text: str) -> str:
    return await asyncio.get_running_loop().run_in_executor(_drawing, render_markdown, text)


def _event(name: str, html: str) -> str:
    # Any of the three ends a line for readers of the stream.
    lines = "".join(f"data: {line}\n" for line in re.split("\r\n|\r|\n", html))
    return f"event: {name}\n{lines}\n"


@sync_to_async
def _let_go_of_connection() -> None:
    connection.close()


@sync_to_async
def _drawn(request: PageRequest, reply_id: int, template: str) -> str:
    with a_moments_connection():
        reply = _looked_up(reply_id)
        if reply is None:
            return render_to_string("chat/_gone.html")
        context = {"row": row(reply.conversation, reply)}
        return render_to_string(template, context, request)


@sync_to_async
def _still_writing(reply_id: int) -> bool:
    with a_moments_connection():
        reply = _looked_up(reply_id)
        try:
            return (
                reply is not None and reply.is_writing and not reply_ending.end_if_abandoned(reply)
            )
        except redis.RedisError:
            return True


def _looked_up(reply_id: int) -> Message | None:
    """None once it has been deleted."""
    found = Message.objects.select_related("conversation__palace", "conversation__agent")
    return found.filter(pk=reply_id).first()


@contextmanager
def a_moments_connection() -> Iterator[None]:
    """A stream may stay open for minutes; a connection may not. And many streams that wake at
    the same moment must not take all there are."""
    with _connections:
        try:
            yield
        finally:
            connection.close()
