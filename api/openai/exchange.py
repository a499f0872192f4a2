"""One proxied request: the limit of concurrent ones, the recall before it is forwarded, and what is
filed and metered at its end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from api.openai import message_filing
from api.openai.chat_request import ChatRequest, History, Said, text_of
from api.openai.conversation_matching import RESPONSE
from api.openai.message_filing import Place
from api.rest.problems import Problem
from chat.models import Message
from chat.reply_writer import CONTEXT_TOKENS
from chat.views.messages import a_moments_connection
from isolation import row_access
from isolation.row_access import Access
from language.errors import WorkingMemoryAway
from language.storable import digest
from llm import sent, usage
from llm.database_writes import put_off
from llm.messages import Message as Prompt
from llm.models import Usage
from llm.providers import Endpoint
from llm.request_forwarding import fill_meter
from palace.models import Palace, access_to
from palace.recall import ConversationState, RecallRequest, Recollection, recall

logger = logging.getLogger(__name__)

# Forwarded requests of a person in this process: each occupies a thread.
MOST_AT_ONCE = 32
# Seconds that a reply waits for its palace, if others have locked it since its request was let in.
# Longer than other writes: it is stored nowhere else until the program repeats it.
REPLY_LOCK_WAIT_S = 30
# Replies that are filed at a time: while they wait they hold connections, of which other streams
# need some, too.
_filing = threading.BoundedSemaphore(4)
_slots_taken: Counter[int] = Counter()
_slots_lock = threading.Lock()


class ReplyReader(Protocol):
    """
    Attributes:
        text: The first choice's text so far.
        usage: As reported, if at all.
        whole: Whether the reply is complete.
    """

    @property
    def text(self) -> str: ...

    usage: Any
    model: str
    whole: bool


@dataclass(slots=True)
class Exchange:
    """
    Attributes:
        mode: The effective memory mode, after the owner's settings.
        palace: None if the person has no palace and the request must not create one.
        place: None if memory is off.
        reader: Collects the reply; None if there is none.
        outcome: The call's outcome, for the meter.
        requests: How often the request was sent on: once, or never.
        response_id: Of the reply, if the program may refer to it.
        when_kept: Is called once the messages and the reply are filed, if they are.
    """

    chat_request: ChatRequest
    owner_id: int
    mode: str
    history: History
    palace: Palace | None = None
    place: Place | None = None
    found: Recollection | None = None
    endpoint: Endpoint | None = None
    reader: ReplyReader | None = None
    outcome: str = usage.OK
    requests: int = 0
    response_id: str = ""
    when_kept: Callable[[Palace, Place], None] | None = None
    _started: float = field(default_factory=time.perf_counter)
    _once: threading.Lock = field(default_factory=threading.Lock)

    @property
    def recalls(self) -> bool:
        return self.mode in ("on", "recall")

    @property
    def remembers(self) -> bool:
        return self.mode in ("on", "remember")

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the requests that the block sends to the model."""
        record = sent.SentRecord()
        try:
            with sent.counting(record):
                yield
        finally:
            self.requests += record.requests

    def headers(self) -> dict[str, str]:
        headers = {"X-Loci-Memory": self.mode}
        if self.chat_request.is_task:
            headers["X-Loci-Memory"] += "; reason=task"
        if self.place is not None:
            headers["X-Loci-Conversation"] = self.place.conversation
        if self.found is not None:
            headers["X-Loci-Recollection"] = str(self.found.uuid)
        return headers

    def finish(self, status: Message.Status = Message.Status.DONE) -> None:
        """File the received part of the reply, and meter the call. Idempotent.

        Args:
            status: The status of the reply, if it is incomplete.
        """
        if not self._once.acquire(blocking=False):
            return
        if self.endpoint is not None:
            give_back_slot(self.owner_id)
        try:
            reach = self._reach()
            with _filing, a_moments_connection(reach), row_access.lock_wait(REPLY_LOCK_WAIT_S):
                # The program has the reply and repeats it in its next request.
                with put_off("A forwarded reply is filed"):
                    self._keep(status)
                self._meter(status)
        except (OperationalError, InterfaceError):
            # As above.
            logger.exception("A forwarded reply was not filed: the database is unavailable.")

    def _reach(self) -> Access:
        """It may be ended by a thread without an account."""
        return access_to(self.palace) if self.palace else Access(owner=self.owner_id)

    def _keep(self, status: Message.Status) -> None:
        if not self.remembers or self.palace is None or self.place is None:
            return
        try:
            self._keep_reply(self.palace, self.place, status)
        except Palace.DoesNotExist:
            logger.info("A palace was deleted while a reply for it was forwarded.")
            return
        if self.when_kept is not None:
            self.when_kept(self.palace, self.place)

    def _keep_reply(self, palace: Palace, place: Place, status: Message.Status) -> None:
        reader = self.reader
        if reader is None or not reader.text.strip():
            with transaction.atomic():
                message_filing.mine_when_at_rest(place.room)
            return
        reply, kept_with = Said("assistant", reader.text), self._kept_with(reader, status)
        message_filing.keep_reply(palace, place, self.history, reply, timezone.now(), kept_with)

    def _kept_with(self, reader: ReplyReader, status: Message.Status) -> dict[str, str]:
        metadata = {"model": reader.model, RESPONSE: self.response_id}
        if self.found is not None:
            metadata["recollection"] = str(self.found.uuid)
        if not reader.whole:
            metadata["status"] = status.value
        return {name: value for name, value in metadata.items() if value}

    def _meter(self, status: Message.Status) -> None:
        if self.endpoint is None:
            return
        prompt = self._prompt()
        with sent.made_of(self._references()):
            sent_record = sent.record_of(self.endpoint, (each["content"] for each in prompt))
        sent_record.requests = self.requests
        meter = usage.Meter(outcome=self.outcome, sent_record=sent_record)
        meter.duration_ms = (time.perf_counter() - self._started) * 1000
        if self.reader is not None:
            fill_meter(meter, self.reader.usage, prompt, self.reader.text, self.endpoint)
            if status is Message.Status.STOPPED and not self.reader.whole:
                meter.outcome = usage.CANCELLED
        usage.keep(
            meter,
            purpose=Usage.Purpose.CHAT,
            provider=self.endpoint.provider,
            model=self.chat_request.model(self.endpoint.model),
            owner_id=self.owner_id,
        )

    def _references(self) -> list[str]:
        messages = [each.key for each in self.place.messages] if self.place else []
        return [
            f"{sent.INSTRUCTIONS}:program",
            *sent.references("drawer", messages),
            *(self.found.references if self.found else ()),
        ]

    def _prompt(self) -> list[Prompt]:
        """The prompt, to estimate its tokens if the provider does not count them."""
        texts = [text_of(message.get("content")) for message in self.chat_request.messages]
        context = self.found.context if self.found else ""
        return [{"role": "user", "content": text} for text in [context, *texts]]


def recall_for(
    palace: Palace, history: History, place: Place, now: datetime, *, has_model: bool
) -> Recollection | None:
    """Recall for the person's last message; None if it has no words.

    Each request has the model's whole prompt, so the block repeats earlier items that still apply.
    """
    if not history.question.strip():
        return None
    # The ledger needs a plain word as id, and a program's conversation id may be any text.
    conversation = ConversationState(
        f"proxy-{digest(place.conversation)[:32]}", place.turn, place.since, carries=True
    )
    return recall(
        palace,
        RecallRequest(
            history.question,
            now=now,
            budget_tokens=CONTEXT_TOKENS,
            with_facts=True,
            exclude_ids=[each.key for each in place.messages],
            conversation=conversation if has_model else None,
        ),
    )


def context_of(found: Recollection | None) -> str:
    """The context block; empty if nothing fits the question, even with unrequested hits."""
    return found.context if found and not found.is_opening else ""


def mark_given(palace: Palace, found: Recollection | None) -> None:
    """Record in the ledger that the model received the block."""
    if found is None or found.injection is None or not context_of(found):
        return
    try:
        found.injection.mark(palace)
    except WorkingMemoryAway as error:
        logger.warning("The ledger was not updated: %s", error)


def take_slot(owner_id: int) -> None:
    """
    Raises:
        Problem: 429, the limit is reached.
    """
    with _slots_lock:
        if _slots_taken[owner_id] >= MOST_AT_ONCE:
            said = f"{MOST_AT_ONCE} requests of yours wait for a model already. Try again soon."
            raise Problem(429, "too_many_at_once", said, headers={"Retry-After": "1"})
        _slots_taken[owner_id] += 1


def give_back_slot(owner_id: int) -> None:
    with _slots_lock:
        _slots_taken[owner_id] -= 1
        if not _slots_taken[owner_id]:
            del _slots_taken[owner_id]
