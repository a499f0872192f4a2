"""The thread that writes one reply: recall, then the model (or quotes without one), then the end.

It is not the request's: a closed tab does not stop it, and any tab can look on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

from chat import live
from chat.ending import end, tell
from chat.extractive import FAILED, NO_MODEL, extractive_reply
from chat.models import Message
from chat.prompting import prompt, window
from chat.remembering import SOURCE
from llm import chat
from llm.chat import Message as Prompt
from llm.errors import LLMError, ModelRefused
from llm.models import Usage
from llm.providers import Endpoint
from palace.models import Drawer
from palace.recall.recall import Recollection, recall
from settings_app.models import MemorySettings, settings_of
from settings_app.time_zone import zone_named

logger = logging.getLogger(__name__)

# Of the memory block, so that five long drawers do not crowd out the conversation.
CONTEXT_TOKENS = 3000

OFF_IN_SETTINGS = "Memory is switched off in the settings."
OFF_FOR_AGENT = "This agent replies without memories."
BROKEN = "Something broke while this was being written. Try again; the server's log says more."


@dataclass(slots=True)
class Draft:
    """What there is of a reply, and how it will be stored.

    Attributes:
        notes: What was degraded or skipped, or went wrong, in sentences.
        mine: False once the text only quotes the palace itself.
    """

    notes: list[str]
    text: str = ""
    model: str = ""
    mine: bool = True
    status: Message.Status = Message.Status.DONE


def begin(reply_id: int) -> None:
    """Write the reply in a thread of its own."""
    threading.Thread(target=_run, args=[reply_id], daemon=True, name=f"reply {reply_id}").start()


def _run(reply_id: int) -> None:
    replies = Message.objects.select_related("conversation__agent", "conversation__palace")
    try:
        reply = replies.filter(pk=reply_id).first()
        if reply is None:
            logger.info("A reply was deleted before it began.")
            return
        draft = Draft([])
        try:
            _write(reply, draft)
        except Exception:
            logger.exception("A reply broke off.")
            draft.status = Message.Status.FAILED
            draft.notes.append(BROKEN)
        end(
            reply,
            draft.status,
            draft.text,
            note=" ".join(draft.notes),
            model=draft.model,
            mine=draft.mine,
        )
    finally:
        # This thread's own: nobody could use it again.
        connection.close()


def _write(reply: Message, draft: Draft) -> None:
    conversation = reply.conversation
    chosen = settings_of(conversation.palace.owner_id)
    # Times in quotes and in the memory block are the reader's own; this thread is his alone.
    timezone.activate(zone_named(chosen.time_zone))
    before = Message.objects.filter(
        palace=reply.palace_id, conversation=conversation, position__lt=reply.position
    )
    said = window(before.current().order_by("-position").iterator(chunk_size=100))
    found = _recall(reply, chosen, said, draft)
    endpoint = _endpoint(reply, chosen, draft)
    if endpoint is None:
        _quote(reply, found, draft, why=NO_MODEL)
        return
    context = found.context if found else ""
    messages = prompt(conversation.agent, context, said, chosen.local_now())
    # The model may take a minute; nobody is to wait for a connection meanwhile.
    connection.close()
    try:
        _stream(reply, messages, endpoint, draft)
    except LLMError as error:
        draft.notes.append(str(error))
        draft.status = Message.Status.FAILED
        if not draft.text:
            _quote(reply, found, draft, why=FAILED)


def _recall(
    reply: Message, chosen: MemorySettings, said: Sequence[Message], draft: Draft
) -> Recollection | None:
    """What the palace has on the last thing said; None where memory is off."""
    agent = reply.conversation.agent
    if not chosen.enabled or (agent is not None and not agent.recalls):
        draft.notes.append(OFF_FOR_AGENT if chosen.enabled else OFF_IN_SETTINGS)
        return None
    found = recall(
        reply.conversation.palace,
        said[-1].text,
        now=chosen.local_now(),
        budget_tokens=CONTEXT_TOKENS,
        leave_out=_not_wanted(reply, said),
    )
    draft.notes += found.notes
    Message.objects.filter(palace=reply.palace_id, pk=reply.pk).update(recollection=found.uuid)
    tell(reply, live.RECALLED)
    return found


def _not_wanted(reply: Message, said: Sequence[Message]) -> list[int]:
    """The drawers of what the model reads anyway, and of the same question asked before."""
    repeated = Message.objects.filter(palace=reply.palace_id, role="user", text=said[-1].text)
    messages = {message.uuid for message in said} | set(repeated.values_list("uuid", flat=True))
    drawers = Drawer.objects.filter(
        palace=reply.palace_id, source=SOURCE, external_id__in=[str(each) for each in messages]
    )
    return list(drawers.values_list("pk", flat=True))


def _endpoint(reply: Message, chosen: MemorySettings, draft: Draft) -> Endpoint | None:
    agent = reply.conversation.agent
    try:
        endpoint = chosen.endpoint(agent.model if agent else "")
    except ModelRefused as error:
        draft.notes.append(str(error))
        return None
    draft.model = endpoint.model if endpoint else ""
    return endpoint


def _stream(reply: Message, messages: Sequence[Prompt], endpoint: Endpoint, draft: Draft) -> None:
    pieces = chat.stream(
        messages,
        endpoint=endpoint,
        purpose=Usage.Purpose.CHAT,
        owner_id=reply.conversation.palace.owner_id,
        temperature=None,
    )
    with closing(pieces):
        for piece in pieces:
            draft.text += piece
            if not tell(reply, live.TEXT, piece):
                draft.status = Message.Status.STOPPED
                return


def _quote(reply: Message, found: Recollection | None, draft: Draft, *, why: str) -> None:
    draft.text = extractive_reply(found.hits if found else None, why=why)
    draft.mine = False
    tell(reply, live.TEXT, draft.text)
