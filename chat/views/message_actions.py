"""Forget, remember or edit a message, and choose how a conversation uses memory."""

from __future__ import annotations

import uuid as uuids
from uuid import UUID

import redis
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from chat import message_memory, replies
from chat.message_memory import MessageMemory
from chat.models import Conversation, Message
from chat.replies import ChatError, Choices
from chat.views.conversations import AWAY, choices_of, key_of, text_of, the_conversation
from chat.views.message_rows import FIRST_POLL_S, last_position, page_with, question_url
from language.errors import FactConflict, NoSuchFact, QuotaExceeded
from language.storable import is_storable
from palace.models import Palace
from settings_app.pages import (
    PageRequest,
    is_stale,
    signed_in_action,
    signed_in_form,
    signed_in_page,
    signed_in_poll,
)

# Seconds between a page's requests for learnt facts; after the last one it stops.
POLLS_S = (FIRST_POLL_S, 6, 10, 15, 20, 30, 45, 60)
LONGEST_FACT = 2000
CHANGED = "This fact has changed meanwhile. Reload the page."
CHOSEN_MEANWHILE = (
    "How this conversation uses memory was changed meanwhile, so nothing was changed now. Look at "
    "“Memory”, and save again if it is not as you want it."
)
VERSIONS_SHOWN = 200


@signed_in_poll
def message_memory_of(request: PageRequest, uuid: UUID) -> HttpResponse:
    """What was learnt from a message; posted to, it remembers or forgets the message."""
    message = the_message(request, uuid)
    if request.method == "POST":
        return _act(request, message, request.POST.get("do", ""))
    if not request.htmx:
        return redirect(address_of(message))
    polls = request.GET.get("polls", "")
    number = int(polls) if polls in map(str, range(99)) else 99
    return _learnt(request, message, polls=number, was_asked=True)


def _act(request: PageRequest, message: Message, do: str) -> HttpResponse:
    acts = {
        "remember": message_memory.remember_message,
        "forget": message_memory.forget_message,
        "undo": message_memory.take_back,
    }
    if do not in acts:
        raise Http404
    error = ""
    try:
        acts[do](message)
    except (Conversation.DoesNotExist, Message.DoesNotExist):
        raise Http404 from None
    except QuotaExceeded as full:
        error = str(full)
    message.refresh_from_db()
    return _done(request, message, error, "foot")


@signed_in_action
def message_fact(request: PageRequest, uuid: UUID, memory: UUID) -> HttpResponse:
    """Edit a fact that was learnt from a message, undo it, or take the undoing back."""
    message = the_message(request, uuid)
    facts = message_memory.memory_of(message).facts
    fact = next((each for each in facts if each.memory == memory), None)
    if fact is None:
        raise Http404
    palace, do = message.conversation.palace, request.POST.get("do")
    try:
        if do == "undo":
            message_memory.undo_fact(palace, fact)
        elif do == "redo":
            message_memory.redo_fact(palace, fact)
        else:
            return _edit_fact(request, message, palace, memory)
    except (NoSuchFact, FactConflict) as refused:
        return _done(request, message, _why(refused), "learnt", memory)
    return _done(request, message, "", "learnt", memory)


def _edit_fact(
    request: PageRequest, message: Message, palace: Palace, memory: UUID
) -> HttpResponse:
    text = " ".join(text_of(request).split())
    if not text or len(text) > LONGEST_FACT or not is_storable(text):
        error = f"Write what it should say, in up to {LONGEST_FACT:,} characters."
        return _done(request, message, error, "learnt", memory)
    fact = next(f for f in message_memory.memory_of(message).facts if f.memory == memory)
    message_memory.edit_fact(palace, fact, text)
    return _done(request, message, "", "learnt", memory)


def _why(refused: NoSuchFact | FactConflict) -> str:
    return refused.for_reader() if isinstance(refused, FactConflict) else CHANGED


def _done(
    request: PageRequest, message: Message, error: str, part: str, acted: UUID | None = None
) -> HttpResponse:
    """The part of the page; in it the focus is where it was, such as at the fact acted on."""
    if not request.htmx:
        if error:
            messages.error(request, error)
        return redirect(address_of(message))
    if part == "learnt":
        return _learnt(request, message, error=error, acted=acted)
    context = _context(message) | {"error": error, "is_fresh": True}
    return render(request, "chat/_foot.html", context)


def _learnt(
    request: PageRequest, message: Message, *, polls: int = 99, **shown: object
) -> HttpResponse:
    return render(request, "chat/_learnt.html", _context(message, polls) | shown)


def _context(message: Message, polls: int = 0) -> dict[str, object]:
    memory = message_memory.memory_of(message)
    return {"message": message, "memory": memory, **poll(memory, polls)}


def poll(memory: MessageMemory, polls: int) -> dict[str, int]:
    """When the page asks next, and its number of requests by then; empty if nothing more comes."""
    if not memory.is_learning or polls >= len(POLLS_S):
        return {}
    return {"poll_in": POLLS_S[polls], "polls": polls + 1}


@signed_in_action
def choose(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Switch memory, or the record, on or off for a conversation."""
    conversation = the_conversation(request, uuid)
    chosen = choices_of(request)
    stored = Choices(conversation.recalls, conversation.off_record)
    if chosen != stored and is_stale(request, conversation.recalls, conversation.off_record):
        messages.error(request, CHOSEN_MEANWHILE)
        return redirect(conversation)
    try:
        replies.choose(conversation, chosen, with_earlier=bool(request.POST.get("earlier")))
    except Conversation.DoesNotExist:
        raise Http404 from None
    return redirect(conversation)


@signed_in_form
def edit_message(request: PageRequest, uuid: UUID) -> HttpResponse:
    """A form with the message's words; posted to, it asks again with those sent."""
    message = the_message(request, uuid)
    if message.role != "user" or message.file_name:
        raise Http404
    text, error, status = message.text, "", 200
    if request.method == "POST":
        text = text_of(request)
        try:
            reply = replies.edit(message, text, key=key_of(request))
            return redirect(question_url(reply.conversation))
        except ChatError as refused:
            error, status = str(refused), 400
        except redis.RedisError:
            error, status = AWAY, 503
        except Conversation.DoesNotExist:
            raise Http404 from None
    later = Message.objects.filter(palace=message.palace_id, conversation=message.conversation)
    context = {
        "message": message,
        "conversation": message.conversation,
        "later": later.current().filter(position__gt=message.position).count(),
        "text": text,
        "error": error,
        "key": uuids.uuid4(),
    }
    return render(request, "chat/edit.html", context, status=status)


@signed_in_page
def earlier_versions(request: PageRequest, uuid: UUID) -> HttpResponse:
    """What an edit or another try has replaced in a conversation, the latest first."""
    conversation = the_conversation(request, uuid)
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    replaced = said.exclude(replaced_at=None).order_by("-replaced_at", "position", "pk")
    shown = list(replaced[:VERSIONS_SHOWN])
    context = {"conversation": conversation, "shown": shown, "most": VERSIONS_SHOWN}
    return render(request, "chat/earlier.html", context)


@signed_in_page
def message_text(request: PageRequest, uuid: UUID) -> HttpResponse:
    """The message to the byte, for copying."""
    message = the_message(request, uuid)
    response = HttpResponse(message.text, content_type="text/plain; charset=utf-8")
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def the_message(request: PageRequest, uuid: UUID) -> Message:
    """The signed-in user's own of that id, or 404."""
    palace = Palace.objects.own(request.user)
    mine = Message.objects.within(palace).select_related("conversation__palace")
    return get_object_or_404(mine.select_related("conversation__agent"), uuid=uuid)


def address_of(message: Message) -> str:
    return page_with(message, message.conversation, last_position(message.conversation))
