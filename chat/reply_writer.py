"""The thread that writes one reply: recall, then the model (or quotes without one), then the end.

The thread is not the request's: a closed tab does not stop it, and any tab can follow it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

import redis
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from chat import live_reply
from chat.live_reply import finish, publish, saved_every_second
from chat.mining_queue import SOURCE, is_automatic, remember_others
from chat.models import Message
from chat.prompt import FAILED, asks, extractive_reply, note_without_model, prompt, window
from isolation import row_access
from isolation.row_access import Access
from language.errors import WorkingMemoryAway
from llm import chat, sent
from llm.chat import Message as Prompt
from llm.database_writes import put_off
from llm.errors import LLMError, ModelRefused
from llm.models import Usage
from llm.providers import Endpoint
from llm.tokens import count_tokens
from palace.models import Drawer, access_to
from palace.recall import (
    ConversationState,
    Hit,
    RecallRequest,
    Recollection,
    on_one_line,
    recall,
)
from palace.working import Namespace, inventory
from settings_app import request_id
from settings_app.models import MemorySettings, ModelUse, settings_of
from settings_app.time_zone import zone_named

logger = logging.getLogger(__name__)

# The most tokens of the memory block, so that long drawers leave room for the conversation.
CONTEXT_TOKENS = 3000
# The most tokens of the list of working memory's entries.
INVENTORY_TOKENS = 1000
# Characters. Models end long before; this stops a server that sends without end.
LONGEST_REPLY = 1_000_000
# Seconds until the end of a reply is stored again, if the database was away.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10
# Seconds between two writes to Redis, and after one that failed.
PUBLISH_EVERY_S, SILENCE_S = 0.03, 2

OFF_IN_SETTINGS = "Memory is switched off in the settings."
OFF_FOR_AGENT = "This agent replies without memories."
INVENTORY_AWAY = (
    "The model could not see what is in working memory, because Redis does not respond."
)
TOO_LONG = "This reply grew too long, so it was ended here."
BROKEN = "Something broke while this was being written. Try again; the server's log says more."


@dataclass(slots=True)
class Draft:
    """A reply so far, and how it will be stored.

    Attributes:
        notes: What was degraded or skipped, or went wrong, in sentences.
        sent: How many characters of the text Redis has acknowledged.
        silent_until: No write to Redis before that, by `time.monotonic()`.
        mine: False if the text only quotes the palace.
    """

    notes: list[str]
    text: str = ""
    sent: int = 0
    silent_until: float = 0
    model: str = ""
    mine: bool = True
    status: Message.Status = Message.Status.DONE


def begin(reply: Message) -> None:
    """Write the reply in a new thread."""
    at = access_to(reply.conversation.palace)
    given = [reply, at, request_id.current()]
    threading.Thread(target=_run, args=given, daemon=True, name=f"reply {reply.pk}").start()


def _run(reply: Message, at: Access, asked: str) -> None:
    """
    Args:
        at: The rows the thread may access; it begins with none.
        asked: The id of the request.
    """
    draft = Draft([])
    with row_access.use(at), request_id.use(asked):
        try:
            _write(reply, draft)
        except Exception:
            logger.exception("A reply broke off.")
            draft.status = Message.Status.FAILED
            draft.notes.append(BROKEN)
        try:
            _finish(reply, draft)
        finally:
            # The connection is this thread's own and is of no use to others.
            connection.close()


def _finish(reply: Message, draft: Draft) -> None:
    """Store the reply, waiting for the database if need be: only this thread has the whole text."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            finish(
                reply,
                status=draft.status,
                text=draft.text,
                note=" ".join(draft.notes),
                model=draft.model,
                mine=draft.mine,
            )
        except (OperationalError, InterfaceError) as error:
            logger.warning("A reply waits to be stored: the database is away (%s).", error)
            connection.close()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        else:
            return


def _write(reply: Message, draft: Draft) -> None:
    conversation = reply.conversation
    chosen = settings_of(conversation.palace.owner_id)
    # Times in quotes and in the memory block are in the user's time zone.
    timezone.activate(zone_named(chosen.time_zone))
    before = Message.objects.filter(
        palace=reply.palace_id, conversation=conversation, position__lt=reply.position
    )
    said = window(before.current().exclude(text="").order_by("-position")[: settings.CHAT_TURNS])
    endpoint = _endpoint(reply, chosen, draft)
    # Without a model nobody reads the conversation again, so its own messages are quoted too.
    read = said if endpoint or not asks(said[-1].text) else said[-1:]
    if _recalls(reply, chosen):
        with row_access.lock_wait(settings.LOCK_WAIT_S), put_off("Other conversations are mined"):
            remember_others(conversation, seen_from=read[0].position)
    found = _recall(reply, chosen, read, draft, has_model=endpoint is not None)
    if endpoint is None:
        _reply_without_model(reply, found, said[-1].text, draft)
        return
    context = found.context if found else ""
    working = _inventory(reply, draft) if found else ""
    messages = prompt(conversation.agent, context, said, chosen.local_now(), working)
    # The model may take a minute; the connection is free for others meanwhile.
    connection.close()
    try:
        with sent.made_of(_references(reply, found)):
            _stream(reply, messages, endpoint, draft, found)
    except LLMError as error:
        draft.notes.append(str(error))
        draft.status = Message.Status.FAILED
        if not draft.text:
            _quote(reply, found, draft, why=FAILED)


def _recall(
    reply: Message,
    chosen: MemorySettings,
    read: Sequence[Message],
    draft: Draft,
    *,
    has_model: bool,
) -> Recollection | None:
    """Recall for the last message; None if memory is off.

    Args:
        read: The messages that the reply is made from, which recall leaves out: those of the
            prompt, or without a model the question alone. The question is last.
    """
    agent = reply.conversation.agent
    if not _recalls(reply, chosen):
        draft.notes += _why_not(reply, chosen)
        return None
    on_record = not reply.off_record
    request = RecallRequest(
        read[-1].text,
        now=chosen.local_now(),
        budget_tokens=CONTEXT_TOKENS,
        with_facts=True,
        agent=agent.name if agent else "",
        exclude_ids=_drawers_of(reply, [message.uuid for message in read]),
        repeats=_drawers_of(reply, _asked_before(reply, read)),
        # Without a model nothing is put before one.
        # Off the record neither trace nor ledger is stored.
        conversation=_conversation_state(reply, read) if has_model and on_record else None,
        store_trace=on_record,
    )
    found = recall(reply.conversation.palace, request)
    _show_recalled(reply, found, draft)
    return found


def _recalls(reply: Message, chosen: MemorySettings) -> bool:
    agent = reply.conversation.agent
    return chosen.enabled and reply.conversation.recalls and (agent is None or agent.recalls)


def _why_not(reply: Message, chosen: MemorySettings) -> list[str]:
    """Why nothing is recalled; empty if the page of the conversation says so already."""
    if not chosen.enabled:
        return [OFF_IN_SETTINGS]
    return [OFF_FOR_AGENT] if reply.conversation.recalls else []


def _show_recalled(reply: Message, found: Recollection, draft: Draft) -> None:
    """Store which recall the reply has, so that open tabs can show it before the first word."""
    draft.notes += found.notes
    if reply.off_record:
        return
    Message.objects.filter(palace=reply.palace_id, pk=reply.pk).update(recollection=found.uuid)
    publish(reply, live_reply.RECALLED)


def _inventory(reply: Message, draft: Draft) -> str:
    """The entries of working memory that the conversation can read, without their values."""
    conversation = reply.conversation
    try:
        own = Namespace("session", str(conversation.uuid))
        listed = inventory(conversation.palace, own, most=INVENTORY_TOKENS, size_of=count_tokens)
    except WorkingMemoryAway as error:
        logger.warning("A reply is written without the working memory: %s", error)
        draft.notes.append(INVENTORY_AWAY)
        return ""
    # Programs name entries as they like; a name must not look like a memory.
    return "\n".join(map(on_one_line, listed.split("\n")))


def _conversation_state(reply: Message, said: Sequence[Message]) -> ConversationState:
    """The messages in the context window, which the model reads again with their memories."""
    first, last = said[0].position, said[-1].position
    return ConversationState(str(reply.conversation.uuid), turn=last, since=first, carries=True)


def _asked_before(reply: Message, said: Sequence[Message]) -> list[UUID]:
    """Messages of all conversations that ask the same question."""
    repeated = Message.objects.filter(palace=reply.palace_id).asked(said[-1].text)
    return list(repeated.values_list("uuid", flat=True))


def _drawers_of(reply: Message, messages: Sequence[UUID]) -> list[int]:
    drawers = Drawer.objects.filter(
        palace=reply.palace_id, source=SOURCE, external_id__in=[str(each) for each in messages]
    )
    return list(drawers.values_list("pk", flat=True))


def _endpoint(reply: Message, chosen: MemorySettings, draft: Draft) -> Endpoint | None:
    agent = reply.conversation.agent
    try:
        endpoint = chosen.endpoint_for(ModelUse.REPLIES, agent.model if agent else "")
    except ModelRefused as error:
        draft.notes.append(str(error))
        return None
    draft.model = endpoint.model if endpoint else ""
    return endpoint


def _references(reply: Message, found: Recollection | None) -> list[str]:
    """References to the parts of a prompt, for the record of what was sent."""
    agent = reply.conversation.agent
    return [
        f"agent:{agent.uuid}" if agent else f"{sent.INSTRUCTIONS}:chat",
        f"conversation:{reply.conversation.uuid}",
        *(found.references if found else ()),
    ]


def _stream(
    reply: Message,
    messages: Sequence[Prompt],
    endpoint: Endpoint,
    draft: Draft,
    found: Recollection | None,
) -> None:
    pieces = chat.stream(
        messages,
        endpoint=endpoint,
        purpose=Usage.Purpose.CHAT,
        owner_id=reply.conversation.palace.owner_id,
        temperature=None,
    )
    with closing(pieces), saved_every_second(reply, lambda: draft.text):
        for piece in _whole_characters(_marked(pieces, reply, found)):
            draft.text += piece
            if len(draft.text) > LONGEST_REPLY:
                draft.status = Message.Status.FAILED
                draft.notes.append(TOO_LONG)
                return
            if not _publish_text(reply, draft):
                draft.status = Message.Status.STOPPED
                return


def _marked(pieces: Iterable[str], reply: Message, found: Recollection | None) -> Iterator[str]:
    """Pass the pieces on, and update the ledger at the first one, or at the end of none.

    By then the model has certainly been sent its memory block.
    """
    injection = found.injection if found else None
    for piece in chain(pieces, [""]):
        if injection:
            try:
                injection.mark(reply.conversation.palace)
            except WorkingMemoryAway as error:
                logger.warning("What a model was given is not in its ledger: %s", error)
            injection = None
        yield piece


def _whole_characters(pieces: Iterable[str]) -> Iterator[str]:
    """Join surrogate pairs, which some servers split between two pieces."""
    half = ""
    for piece in pieces:
        text = half + piece
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if whole := text.removesuffix(half):
            yield _storable(whole)
    if half:
        yield _storable(half)


def _storable(text: str) -> str:
    """Join surrogate pairs; a single surrogate becomes a question mark."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _publish_text(reply: Message, draft: Draft) -> bool:
    """Publish new text, if Redis answers. Returns False once the user pressed stop."""
    if time.monotonic() < draft.silent_until:
        return True
    try:
        going_on = live_reply.publish_text(reply.uuid, draft.text, draft.sent)
    except redis.RedisError as error:
        logger.warning("A reply is written unseen: Redis does not answer (%s).", error)
        draft.sent, draft.silent_until = 0, time.monotonic() + SILENCE_S
        return True
    draft.sent, draft.silent_until = len(draft.text), time.monotonic() + PUBLISH_EVERY_S
    return going_on


def _reply_without_model(
    reply: Message, found: Recollection | None, text: str, draft: Draft
) -> None:
    palace = reply.conversation.palace
    keeps = not reply.off_record and is_automatic(palace.owner_id)
    before = Message.objects.filter(
        palace=reply.palace_id, conversation=reply.conversation, position__lt=reply.position
    )
    is_first = not before.current().filter(role="assistant", model="", mine=False).exists()
    hits, facts = _asked_hits(found), found.facts if found else ()
    noted = note_without_model(palace, text, hits, facts, keeps=keeps, is_first=is_first)
    _put(reply, draft, noted)


def _quote(reply: Message, found: Recollection | None, draft: Draft, *, why: str) -> None:
    _put(reply, draft, extractive_reply(_asked_hits(found), why=why))


def _asked_hits(found: Recollection | None) -> Sequence[Hit] | None:
    """The hits, if they answer a question; those at the opening of a conversation do not."""
    if found is None:
        return None
    return () if found.is_opening else found.hits


def _put(reply: Message, draft: Draft, text: str) -> None:
    draft.text = text
    draft.mine = False
    _publish_text(reply, draft)
