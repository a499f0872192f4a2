"""Conversations: the list, one of them, and what can be done with it as a whole."""

from __future__ import annotations

import logging
import uuid
from typing import Any
from uuid import UUID

import redis
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django_htmx.http import HttpResponseClientRedirect

from chat import replies, reply_ending
from chat.errors import ChatError
from chat.mining_queue import SOURCE, is_automatic, keep_waiting, waiting
from chat.models import Agent, Conversation
from chat.titles import one_line
from chat.views.message_form import AWAY, agent_of, chosen_agent, key_of, place_of, refusal, text_of
from chat.views.message_rows import question_url, stretch
from palace import tasks
from palace.curation.trash import drawers_in, move_to_trash
from palace.errors import WorkingMemoryAway
from palace.models import Drawer, Palace, Room
from palace.templatetags.palace_tags import counted
from palace.working.ledger import Ledger
from settings_app.models import settings_of
from settings_app.pages import (
    PageRequest,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
)

logger = logging.getLogger(__name__)

LISTED = 30
BESIDE = 12


@signed_in_form
def chat(request: PageRequest) -> HttpResponse:
    """The list, and a box that begins a new conversation."""
    palace = Palace.objects.own(request.user)
    if request.method != "POST":
        return _show_chat(request, palace)
    try:
        agent = chosen_agent(palace, request)
        conversation = replies.start(palace, agent, text_of(request), key=key_of(request))
    except ChatError as error:
        return _not_begun(request, palace, str(error), 400)
    except redis.RedisError:
        return _not_begun(request, palace, AWAY, 503)
    if request.htmx:
        return HttpResponseClientRedirect(conversation.get_absolute_url())
    return redirect(question_url(conversation))


def _not_begun(request: PageRequest, palace: Palace, error: str, status: int) -> HttpResponse:
    if request.htmx:
        return refusal(request, error)
    return _show_chat(request, palace, error=error, status=status)


def _show_chat(
    request: PageRequest, palace: Palace, *, status: int = 200, **composer: Any
) -> HttpResponse:
    listed = Paginator(_conversations(palace), LISTED)
    context = {
        "page": listed.get_page(request.GET.get("page")),
        "agents": Agent.objects.within(palace).order_by("pk"),
        "agent": agent_of(palace, request.POST.get("agent") or request.GET.get("agent")),
        "text": text_of(request),
        "key": uuid.uuid4(),
        "no_model": settings_of(palace.owner_id).chat_model().endpoint is None,
        "drawers_total": Drawer.objects.within(palace).kept().count(),
        **composer,
    }
    return render_page_or_part(request, "chat/chat.html", "conversations", context, status=status)


@signed_in_page
def conversation_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)
    before = place_of(request.GET.get("before", ""))
    if before is not None and request.htmx and not request.htmx.history_restore_request:
        context = {"conversation": conversation, "stretch": stretch(conversation, before)}
        return render(request, "chat/conversation_detail.html#stretch", context)
    return show_conversation(request, conversation, before=before)


def show_conversation(
    request: PageRequest,
    conversation: Conversation,
    *,
    before: int | None = None,
    status: int = 200,
    **composer: Any,
) -> HttpResponse:
    """The page; `error` goes beside the box, which keeps `text`."""
    palace = conversation.palace
    reply_ending.end_abandoned(conversation)
    shown = stretch(conversation, before)
    context = {
        "conversation": conversation,
        "stretch": shown,
        "seen": shown.last,
        "beside": _conversations(palace)[:BESIDE],
        "room": _room(conversation),
        "waiting": waiting(conversation).count(),
        "automatic": is_automatic(palace.owner_id),
        "key": uuid.uuid4(),
        **composer,
    }
    return render(request, "chat/conversation_detail.html", context, status=status)


@signed_in_action
def remember_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Keep what waits, now and by hand. What is made of it is left to the worker."""
    conversation = the_conversation(request, uuid)
    try:
        kept = keep_waiting(conversation)
    except Conversation.DoesNotExist:
        raise Http404 from None
    if kept.room:
        tasks.enqueue_mining([kept.room.pk])
    said = f"Remembered {counted(kept.messages, 'message')}."
    messages.success(request, said if kept.messages else "Everything is remembered already.")
    return redirect(conversation)


@signed_in_form
def rename_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)
    if request.method != "POST":
        return render(request, "chat/rename.html", {"conversation": conversation})
    title = one_line(request.POST.get("title", ""))
    if not title:
        context = {"conversation": conversation, "error": "Give it a title of at least one letter."}
        return render(request, "chat/rename.html", context, status=400)
    conversation.title = title
    conversation.save(update_fields=["title"])
    return redirect(conversation)


@signed_in_form
def delete_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Deletes the chat; what was remembered of it stays, unless asked to go as well."""
    conversation = the_conversation(request, uuid)
    if request.method != "POST":
        room = _room(conversation)
        drawers = drawers_in(room).kept().count() if room else 0
        context = {"conversation": conversation, "drawers": drawers}
        return render(request, "chat/delete.html", context)
    _delete(conversation, with_drawers=bool(request.POST.get("drawers")))
    messages.success(request, f"“{conversation.title}” is deleted.")
    return redirect("chat")


def _delete(conversation: Conversation, *, with_drawers: bool) -> None:
    reply = reply_ending.writing_in(conversation)
    with transaction.atomic():
        # What is just being remembered of it is waited for, and goes along.
        conversation.palace.lock()
        room = _room(conversation)
        if room and with_drawers:
            move_to_trash(room)
        conversation.delete()
    if reply:
        reply_ending.cancel(reply)
    _forget_ledger(conversation)


def _forget_ledger(conversation: Conversation) -> None:
    """Where Redis is away it goes by itself within the day."""
    try:
        Ledger(conversation.palace, str(conversation.uuid)).clear()
    except WorkingMemoryAway as error:
        logger.warning("A ledger outlives its conversation for a while: %s", error)


def the_conversation(request: PageRequest, uuid: UUID) -> Conversation:
    """The signed-in user's own of that id, or 404."""
    palace = Palace.objects.own(request.user)
    mine = Conversation.objects.within(palace).select_related("agent", "palace")
    return get_object_or_404(mine, uuid=uuid)


def _conversations(palace: Palace) -> QuerySet[Conversation]:
    """Latest first."""
    mine = Conversation.objects.within(palace).select_related("agent")
    return mine.order_by("-spoke_at", "-pk")


def _room(conversation: Conversation) -> Room | None:
    """Where the palace keeps it."""
    rooms = Room.objects.within(conversation.palace).select_related("wing")
    return rooms.filter(source=SOURCE, external_id=str(conversation.uuid)).first()
