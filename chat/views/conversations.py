"""Conversations: begin one, read it, change it."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import redis
from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseClientRedirect

from chat import live_reply, replies
from chat.mining_queue import SOURCE, is_automatic, keep_waiting
from chat.models import Agent, Conversation, Message, one_line
from chat.replies import BadFile, BadText, ChatError, Choices, TextFile, read_files
from chat.views.agents import agent_of, chosen_agent
from chat.views.message_rows import last_position, page_with, question_url, stretch
from isolation.raw_sql import Part, all_but, columns_of, fetch_instances
from language.errors import QuotaExceeded, WorkingMemoryAway
from language.storable import storable_label
from palace.curation.trash import contents_of, move_to_trash
from palace.mining import tasks
from palace.models import Drawer, Palace, Room, Wing
from palace.working.ledger import Ledger
from settings_app.models import ModelUse, settings_of
from settings_app.pages import (
    NOTHING_SELECTED,
    PageRequest,
    is_stale,
    render_page_or_part,
    signed_in_action,
    signed_in_form,
    signed_in_page,
    wants_part,
)
from settings_app.row_tags import counted

logger = logging.getLogger(__name__)

LISTED = 30
BESIDE = 12
_PLACE: tuple[Part, ...] = (
    (Room, "r", all_but(Room, "id uuid palace_id number")),
    (Wing, "w", all_but(Wing, "id palace_id number name")),
)
_ROOM = f"""
SELECT {columns_of(_PLACE)} FROM palace_room r
JOIN palace_wing w ON w.palace_id = r.palace_id AND w.id = r.wing_id
WHERE r.palace_id = %s AND r.source = %s AND r.external_id = %s
ORDER BY r.started_at, r.number LIMIT 1
"""  # noqa: S608 - put together from the models.
# Messages found at most by a search in a conversation, and characters shown before a word.
MOST_FOUND, LEAD, FOUND_LENGTH = 50, 60, 200

AWAY = (
    "Loci's short-term store (Redis) does not answer, so nothing was sent. "
    "Your text is still here: try again in a moment."
)


@signed_in_form
def chat(request: PageRequest) -> HttpResponse:
    """The list, and a box that begins a new conversation."""
    palace = Palace.objects.own(request.user)
    if request.method != "POST":
        return _show_chat(request, palace)
    try:
        agent = chosen_agent(palace, request)
        conversation = replies.start(
            palace,
            agent,
            text_of(request),
            key=key_of(request),
            choices=choices_of(request),
            files=files_of(request),
        )
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
    listed = Paginator(Conversation.objects.within(palace).listed(), LISTED)
    context = {
        "page": listed.get_page(request.GET.get("page")),
        "agents": Agent.objects.within(palace).order_by("pk"),
        "agent": agent_of(palace, request.POST.get("agent") or request.GET.get("agent")),
        "text": text_of(request),
        "key": uuid.uuid4(),
        "draft": f"new-{palace.uuid}",
        "no_model": settings_of(palace.owner_id).chat_model(ModelUse.REPLIES).endpoint is None,
        "drawers_total": Room.objects.within(palace).sizes()["kept"],
        **composer,
    }
    return render_page_or_part(request, "chat/chat.html", "conversations", context, status=status)


@signed_in_page
def conversation_detail(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)
    before = place_of(request.GET.get("before", ""))
    if before is not None and wants_part(request):
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
    """The page; `error` is shown at the message box, which keeps `text`."""
    palace = conversation.palace
    shown = stretch(conversation, before)
    if shown.is_growing:
        live_reply.end_abandoned(conversation)
        shown = stretch(conversation, before)
    unfiled = conversation.count_unmined()
    words = " ".join(storable_label(request.GET.get("find", "")).split())
    context = {
        "find": words,
        "found": _find_in(conversation, words) if words else None,
        "replaced": shown.has_replaced,
        "conversation": conversation,
        "stretch": shown,
        "seen": shown.last,
        "beside": Conversation.objects.newest(palace, BESIDE),
        "room": _room(conversation),
        "waiting": unfiled,
        "automatic": bool(unfiled) and is_automatic(palace.owner_id),
        "key": uuid.uuid4(),
        **composer,
    }
    return render(request, "chat/conversation_detail.html", context, status=status)


@signed_in_action
def remember_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    """File the waiting messages now; the worker mines them."""
    conversation = the_conversation(request, uuid)
    try:
        kept = keep_waiting(conversation)
    except Conversation.DoesNotExist:
        raise Http404 from None
    except QuotaExceeded as error:
        messages.error(request, str(error))
        return redirect(conversation)
    if kept.room:
        tasks.enqueue_mining([kept.room.pk])
    said = f"Remembered {counted(kept.messages, 'message')}."
    messages.success(request, said if kept.messages else "Everything is remembered already.")
    return redirect(conversation)


@signed_in_form
def rename_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    conversation = the_conversation(request, uuid)
    if request.method != "POST":
        context = {"conversation": conversation, "title": conversation.title}
        return render(request, "chat/rename.html", context)
    title, error = one_line(request.POST.get("title", "")), ""
    if not title:
        error = "Give it a title of at least one letter."
    elif title != conversation.title and is_stale(request, conversation.title):
        error = (
            f"It was renamed meanwhile: it is “{conversation.title}” now. Rename it again to "
            "replace that."
        )
    if error:
        context = {"conversation": conversation, "title": title, "error": error}
        return render(request, "chat/rename.html", context, status=400)
    palace = conversation.palace_id
    if not Conversation.objects.filter(palace=palace, pk=conversation.pk).update(title=title):
        raise Http404
    return redirect(conversation)


@signed_in_form
def delete_conversation(request: PageRequest, uuid: UUID) -> HttpResponse:
    """Delete the conversation; its memories stay, unless their deletion is asked for too."""
    conversation = the_conversation(request, uuid)
    if request.method != "POST":
        return _ask_to_delete(request, conversation.palace, [conversation])
    return _delete_all(request, [conversation])


@signed_in_action
def selected_conversations(request: PageRequest) -> HttpResponse:
    """Likewise the ticked `conversation`s: ask first, delete them once it is `sure`."""
    palace = Palace.objects.own(request.user)
    try:
        ticked = {UUID(each) for each in request.POST.getlist("conversation")}
    except ValueError:
        raise Http404 from None
    mine = Conversation.objects.within(palace).select_related("palace")
    chosen = list(mine.filter(uuid__in=ticked).order_by("-spoke_at", "-pk"))
    if chosen and "sure" in request.POST:
        return _delete_all(request, chosen)
    if chosen:
        return _ask_to_delete(request, palace, chosen)
    if ticked:
        raise Http404
    messages.error(request, NOTHING_SELECTED)
    return redirect("chat")


def _ask_to_delete(
    request: PageRequest, palace: Palace, chosen: Sequence[Conversation]
) -> HttpResponse:
    said = Message.objects.within(palace).filter(conversation__in=chosen, replaced_at=None)
    ids = [str(each.uuid) for each in chosen]
    drawers = Drawer.objects.within(palace).filter(
        room__palace=palace, room__source=SOURCE, room__external_id__in=ids
    )
    going = contents_of(palace, drawers)
    context = {"chosen": chosen, "messages_total": said.count(), "going": going}
    return render(request, "chat/delete.html", context)


def _delete_all(request: PageRequest, chosen: Sequence[Conversation]) -> HttpResponse:
    for conversation in chosen:
        _delete(conversation, with_drawers=bool(request.POST.get("drawers")))
    title = f"“{chosen[0].title}” is"
    what = title if len(chosen) == 1 else f"{counted(len(chosen), 'conversation')} are"
    messages.success(request, f"{what} deleted.")
    return redirect("chat")


def _delete(conversation: Conversation, *, with_drawers: bool) -> None:
    reply = live_reply.writing_in(conversation)
    with transaction.atomic():
        # Waits for a running mining of it, so that its result is deleted too.
        conversation.palace.lock()
        room = _room(conversation)
        if room and with_drawers:
            move_to_trash(room)
        conversation.delete()
    if reply:
        live_reply.cancel(reply)
    _forget_ledger(conversation)


def _forget_ledger(conversation: Conversation) -> None:
    """Delete the ledger; if Redis is away, it expires within a day."""
    try:
        Ledger(conversation.palace, str(conversation.uuid)).clear()
    except WorkingMemoryAway as error:
        logger.warning("A ledger outlives its conversation for a while: %s", error)


def the_conversation(request: PageRequest, uuid: UUID) -> Conversation:
    """The signed-in user's conversation of that id, or 404."""
    found = Conversation.objects.named(Palace.objects.own(request.user), uuid)
    if found is None:
        raise Http404
    return found


def _room(conversation: Conversation) -> Room | None:
    """The room of the conversation, with what is shown of it and of its wing."""
    given = [conversation.palace_id, SOURCE, str(conversation.uuid)]
    for room, wing in fetch_instances(_ROOM, given, _PLACE):
        room.wing = wing
        return cast("Room", room)
    return None


def text_of(request: PageRequest) -> str:
    """The message as it was typed: forms send each line break as two characters."""
    return request.POST.get("text", "").replace("\r\n", "\n")


def choices_of(request: PageRequest) -> Choices:
    """Both boxes are unticked in an ordinary conversation."""
    off_record, forgetful = (bool(request.POST.get(name)) for name in ("off_record", "no_recall"))
    return Choices(recalls=not forgetful, off_record=off_record)


def files_of(request: PageRequest) -> list[TextFile]:
    """The text files attached.

    Raises:
        BadText: there are too many, or one is too large or is no text.
    """
    try:
        return read_files(request.FILES.getlist("files"))
    except BadFile as error:
        raise BadText(str(error)) from None


def key_of(request: PageRequest) -> uuid.UUID:
    """The id the page gave the message, so that a form sent twice says it once.

    Raises:
        BadText: it is none.
    """
    return _id_in(request, "key")


def reply_of(request: PageRequest) -> uuid.UUID:
    """The id of the reply that is to be tried again.

    Raises:
        BadText: it is none.
    """
    return _id_in(request, "reply")


def _id_in(request: PageRequest, name: str) -> uuid.UUID:
    try:
        return uuid.UUID(request.POST.get(name, ""))
    except ValueError:
        raise BadText("The form was not complete. Send it once more.") from None


def place_of(text: str) -> int | None:
    """A position in a conversation, from an address or a form; None where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def refusal(request: PageRequest, error: str) -> HttpResponse:
    """For htmx: the error at the message box, which keeps its text."""
    # Pages swap in answers with status 400 only.
    response = render(request, "chat/_composer.html#error", {"error": error}, status=400)
    response.headers["HX-Retarget"] = "#text-error"
    response.headers["HX-Reswap"] = "outerHTML"
    return response


@dataclass(frozen=True, slots=True)
class Found:
    """A message that a search found, in pieces; True marks a word that was searched for."""

    message: Message
    pieces: tuple[tuple[str, bool], ...]
    address: str


def _find_in(conversation: Conversation, words: str) -> list[Found]:
    """The messages that have every word, the latest first."""
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    last = last_position(conversation)
    found = said.current().exclude(text="")
    for word in words.split():
        found = found.filter(text__icontains=word)
    return [
        Found(message, _pieces(message.text, words), page_with(message, conversation, last))
        for message in found.order_by("-position")[:MOST_FOUND]
    ]


def _pieces(text: str, words: str) -> tuple[tuple[str, bool], ...]:
    pattern = re.compile("|".join(map(re.escape, words.split())), re.IGNORECASE)
    first = pattern.search(text)
    begins, ends = first.span() if first else (0, 0)
    # Cut between words, where there are spaces.
    start = begins - LEAD
    start = max(start, text.find(" ", start, begins) + 1) if start > 0 else 0
    end = start + FOUND_LENGTH
    if end < len(text) and (cut := text.rfind(" ", ends, end)) > start:
        end = cut
    shown = text[start:end]
    pieces: list[tuple[str, bool]] = [("…\u00a0" if start else "", False)]
    at = 0
    for match in pattern.finditer(shown):
        pieces += [(shown[at : match.start()], False), (match[0], True)]
        at = match.end()
    pieces += [(shown[at:], False), ("\u00a0…" if end < len(text) else "", False)]
    return tuple(piece for piece in pieces if piece[0])
