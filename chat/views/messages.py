"""One message: say it, try its reply again, stop it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from uuid import UUID

import redis
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from chat import replies, reply_ending
from chat.errors import ChatError
from chat.models import Conversation, Message
from chat.views.conversations import show_conversation, the_conversation
from chat.views.message_form import AWAY, key_of, place_of, refusal, reply_of, text_of
from chat.views.message_rows import PAGE_SIZE, question_url, row, rows
from palace.models import Palace
from settings_app.pages import PageRequest, signed_in_action

CANNOT_STOP = (
    "Loci's short-term store (Redis) does not answer, so nothing can be stopped. "
    "Try again in a moment."
)


@signed_in_action
def say(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)

    def begin() -> Message:
        return replies.say(conversation, text_of(request), key=key_of(request))

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
    """Begin a reply and show it, or say why not."""
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
    """The two new messages, what another tab said before them, and an empty box."""
    said = reply.position - 1
    seen = place_of(request.POST.get("seen", ""))
    messages = Message.objects.filter(palace=reply.palace_id, conversation=conversation).current()
    new = messages.filter(position__gte=said if seen is None else min(seen + 1, said))
    latest = list(new.order_by("-position")[:PAGE_SIZE])
    context = {
        "conversation": conversation,
        "rows": rows(conversation, latest[::-1], ends_here=True),
        "key": uuid.uuid4(),
        "seen": reply.position,
    }
    return render(request, "chat/_said.html", context)


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
    """Ends it with what there is; one that has ended meanwhile stays as it is."""
    reply = the_reply(request, uuid)
    try:
        if reply.is_writing:
            reply_ending.stop(reply)
    except redis.RedisError:
        return _refused(request, reply.conversation, CANNOT_STOP, 503)
    if request.htmx:
        return HttpResponse(status=204)  # The stream sends the end to every open tab.
    return redirect(question_url(reply.conversation))


def the_reply(request: PageRequest, uuid: UUID) -> Message:
    palace = Palace.objects.own(request.user)
    mine = Message.objects.within(palace).filter(role="assistant")
    return get_object_or_404(mine.select_related("conversation__palace"), uuid=uuid)
