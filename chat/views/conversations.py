"""Conversations: the list, one of them, and what can be done with it as a whole."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

import redis
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from chat import replies
from chat.ending import end_abandoned
from chat.errors import ChatError
from chat.models import Agent, Conversation
from chat.remembering import SOURCE, is_automatic, remember, waiting
from chat.views.composing import AWAY, agent_of, chosen_agent, key_of, text_of
from chat.views.showing import stretch
from palace.curation.trash import drawers_in, move_to_trash
from palace.models import Drawer, Palace, Room
from palace.storable import storable_label
from palace.views.rendering import render_page_or_part
from settings_app.access import (
    PageRequest,
    signed_in_action,
    signed_in_form,
    signed_in_page,
)
from settings_app.models import settings_of

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
        return _show_chat(request, palace, error=str(error), status=400)
    except redis.RedisError:
        return _show_chat(request, palace, error=AWAY, status=503)
    return redirect(conversation)


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
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 10:
        context = {"conversation": conversation, "stretch": stretch(conversation, int(before))}
        return render_page_or_part(request, "chat/conversation_detail.html", "stretch", context)
    return show_conversation(request, conversation)


def show_conversation(
    request: PageRequest, conversation: Conversation, *, status: int = 200, **composer: Any
) -> HttpResponse:
    """The page; `error` goes beside the box, which keeps `text`."""
    palace = conversation.palace
    end_abandoned(conversation)
    context = {
        "conversation": conversation,
        "stretch": stretch(conversation),
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
    """Mine what waits, now and by hand."""
    conversation = the_conversation(request, uuid)
    count = remember(conversation)
    noun = "message" if count == 1 else "messages"
    messages.success(request, f"Remembered {count} {noun}." if count else "Nothing was waiting.")
    return redirect(conversation)


@signed_in_form
def rename_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)
    if request.method != "POST":
        return render(request, "chat/rename.html", {"conversation": conversation})
    title = storable_label(" ".join(request.POST.get("title", "").split()))
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
    room = _room(conversation)
    if request.method != "POST":
        drawers = drawers_in(room).kept().count() if room else 0
        context = {"conversation": conversation, "drawers": drawers}
        return render(request, "chat/delete.html", context)
    if room and request.POST.get("drawers"):
        move_to_trash(room)
    title = conversation.title
    conversation.delete()
    messages.success(request, f"“{title}” is deleted.")
    return redirect("chat")


def the_conversation(request: PageRequest, uuid: UUID) -> Conversation:
    """The signed-in user's own of that id, or 404."""
    palace = Palace.objects.own(request.user)
    mine = Conversation.objects.within(palace).select_related("agent", "palace")
    return get_object_or_404(mine, uuid=uuid)


def _conversations(palace: Palace) -> Any:
    """Latest first, each with `message_count`."""
    current = Count("messages", filter=Q(messages__replaced_at=None))
    return (
        Conversation.objects.within(palace)
        .select_related("agent")
        .annotate(message_count=current)
        .order_by("-spoke_at", "-pk")
    )


def _room(conversation: Conversation) -> Room | None:
    """Where the palace keeps it."""
    rooms = Room.objects.within(conversation.palace).select_related("wing")
    return rooms.filter(source=SOURCE, external_id=str(conversation.uuid)).first()
