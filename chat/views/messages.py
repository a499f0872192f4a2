"""Send a message, retry or stop its reply, and stream the reply."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from uuid import UUID

import redis
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import OperationalError, connection
from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django_htmx.http import HttpResponseClientRefresh

from chat import live_reply, replies
from chat.markdown import render_markdown
from chat.models import Conversation, Message
from chat.replies import ChatError
from chat.views.conversations import (
    AWAY,
    files_of,
    key_of,
    place_of,
    refusal,
    reply_of,
    show_conversation,
    text_of,
    the_conversation,
)
from chat.views.message_rows import question_url, row, rows
from isolation import row_access
from isolation.row_access import Access
from llm.database_writes import is_locked
from palace.models import Palace, access_to
from settings_app.pages import PageRequest, signed_in_action, signed_in_page

CANNOT_STOP = (
    "Loci's short-term store (Redis) does not answer, so nothing can be stopped. "
    "Try again in a moment."
)

# Of messages sent in another tab, so many are shown above the new ones; of more the page is loaded.
MISSED_AT_MOST = 50

logger = logging.getLogger(__name__)

# The most connections, and renderings, at once of all streams in this process. Two renderings at
# once would be no quicker, and would slow down all other requests.
_connections = threading.BoundedSemaphore(10)
_drawing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drawing")

# Seconds between two renderings of a growing reply; longer where one takes long.
LEAST_PAUSE_S = 0.04
PAUSE_BY_DRAWING = 4
# Seconds after which a stream looks whether its browser is still signed in.
SIGNED_IN_FOR_S = 2


@signed_in_action
def say(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)

    def begin() -> Message:
        files = files_of(request)
        return replies.say(conversation, text_of(request), key=key_of(request), files=files)

    return _answer(request, conversation, begin, _said)


@signed_in_action
def retry(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)

    def begin() -> Message:
        return replies.retry(conversation, reply_of(request))

    return _answer(request, conversation, begin, _tried_again)


def _answer(
    request: PageRequest,
    conversation: Conversation,
    begin: Callable[[], Message],
    show: Callable[[PageRequest, Conversation, Message], HttpResponse],
) -> HttpResponse:
    """Begin a reply and show it, or the error."""
    try:
        reply = begin()
    except ChatError as error:
        return _refused(request, conversation, str(error), 400)
    except redis.RedisError:
        return _refused(request, conversation, AWAY, 503)
    except Conversation.DoesNotExist:
        raise Http404 from None
    if request.htmx:
        return show(request, conversation, reply)
    return redirect(question_url(reply.conversation))


def _said(request: PageRequest, conversation: Conversation, reply: Message) -> HttpResponse:
    """The new messages, those that another tab has sent before them, and an empty box.

    The whole page, loaded again, if the other tab has sent many.
    """
    said = _first_of_turn(reply)
    seen = place_of(request.POST.get("seen", ""))
    messages = Message.objects.filter(palace=reply.palace_id, conversation=conversation).current()
    new = messages.filter(position__gte=said if seen is None else min(seen + 1, said))
    latest = list(new.order_by("-position")[: MISSED_AT_MOST + 1])
    if len(latest) > MISSED_AT_MOST:
        return HttpResponseClientRefresh()
    context = {
        "conversation": conversation,
        "rows": rows(conversation, latest[::-1], ends_here=True),
        "key": uuid.uuid4(),
        "seen": reply.position,
    }
    return render(request, "chat/_said.html", context)


def _first_of_turn(reply: Message) -> int:
    """The position of the question before a reply, or of the first file attached to it."""
    said = Message.objects.filter(palace=reply.palace_id, conversation=reply.conversation_id)
    before = said.current().filter(position__lt=reply.position - 1).exclude(role="user")
    last = before.order_by("-position").values_list("position", flat=True).first()
    return 0 if last is None else last + 1


def _tried_again(request: PageRequest, conversation: Conversation, reply: Message) -> HttpResponse:
    return render(request, "chat/_message.html", {"row": row(conversation, reply)})


def _refused(
    request: PageRequest, conversation: Conversation, error: str, status: int
) -> HttpResponse:
    if request.htmx:
        return refusal(request, error)
    text = text_of(request)
    return show_conversation(request, conversation, status=status, error=error, text=text)


@signed_in_action
def stop_reply(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Stop a reply with the text so far; one that has ended stays as it is."""
    reply = the_reply(request, uuid)
    try:
        if reply.is_writing:
            live_reply.stop(reply)
    except redis.RedisError:
        return _refused(request, reply.conversation, CANNOT_STOP, 503)
    if request.htmx:
        return HttpResponse(status=204)  # The stream sends the end to every open tab.
    return redirect(question_url(reply.conversation))


def the_reply(request: PageRequest, uuid: UUID) -> Message:
    palace = Palace.objects.own(request.user)
    mine = Message.objects.within(palace).filter(role="assistant")
    return get_object_or_404(mine.select_related("conversation__palace"), uuid=uuid)


@signed_in_page
def reply_memories(request: PageRequest, uuid: UUID) -> HttpResponse:
    """What was remembered for a reply, as its line unfolds; the recall's page without scripts."""
    reply = the_reply(request, uuid)
    if reply.recollection is None:
        return redirect(question_url(reply.conversation))
    if not request.htmx:
        return redirect("recall_detail", reply.recollection)
    context = {"row": row(reply.conversation, reply)}
    return render(request, "chat/_remembered_list.html", context)


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
                if await _still_writing(reply):
                    return  # The browser will ask again.
        if not await _still_signed_in(request, reply):
            return
    yield _event("done", await _drawn(request, reply, "chat/_message.html"))


async def _growth(request: PageRequest, reply: Message) -> AsyncGenerator[str]:
    """The events before the end, or before the browser is signed out."""
    looked = time.monotonic()
    async with aclosing(live_reply.follow(reply.uuid)) as feed:
        async for news in feed:
            if time.monotonic() - looked > SIGNED_IN_FOR_S:
                if not await _still_signed_in(request, reply):
                    return
                looked = time.monotonic()
            if news.recalled:
                yield _event("recalled", await _drawn(request, reply, "chat/_remembered.html"))
            if news.over or not (news.grown or await _still_writing(reply)):
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
def _drawn(request: PageRequest, reply: Message, template: str) -> str:
    with a_moments_connection(_access_of(reply)):
        found = _looked_up(reply)
        if found is None:
            return render_to_string("chat/_gone.html")
        context = {"row": row(found.conversation, found)}
        return render_to_string(template, context, request)


@sync_to_async
def _still_signed_in(request: PageRequest, reply: Message) -> bool:
    """Whether the session that opened the stream lasts, and its user's password is the same."""
    with a_moments_connection(_access_of(reply)):
        lasts = request.session.exists(request.session.session_key or "")
        return lasts and get_user(request).is_authenticated


@sync_to_async
def _still_writing(reply: Message) -> bool:
    with a_moments_connection(_access_of(reply)):
        found = _looked_up(reply)
        try:
            return found is not None and found.is_writing and not live_reply.end_if_abandoned(found)
        except redis.RedisError:
            return True
        except OperationalError as error:
            if is_locked(error):
                return True
            raise


def _access_of(reply: Message) -> Access:
    return access_to(reply.conversation.palace)


def _looked_up(reply: Message) -> Message | None:
    """The reply as it is now; None if it was deleted."""
    found = Message.objects.select_related("conversation__palace", "conversation__agent")
    return found.filter(palace=reply.palace_id, pk=reply.pk).first()


@contextmanager
def a_moments_connection(at: Access) -> Iterator[None]:
    """A stream may stay open for minutes; a connection may not. And many streams that wake at
    the same moment, or wait for the same lock, must not take all there are.

    Args:
        at: The rows its statements may access: a stream may outlive the request that opened it.
    """
    with _connections, row_access.use(at), row_access.lock_wait(settings.LOCK_WAIT_S):
        try:
            yield
        finally:
            connection.close()
