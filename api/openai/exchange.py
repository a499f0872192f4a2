"""The state of one proxied request, and what is filed and metered at its end."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from api.openai import concurrency, message_filing
from api.openai.chat_request import ChatRequest
from api.openai.message_filing import Place
from api.openai.message_text import History, Said, text_of
from api.openai.replies import ReplyReader
from chat.models import Message
from chat.views.streams import a_moments_connection
from llm import usage
from llm.messages import Message as Prompt
from llm.models import Usage
from llm.providers import Endpoint
from llm.request_forwarding import fill_meter
from palace.models import Palace
from palace.recall import Recollection

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Exchange:
    """
    Attributes:
        mode: The effective memory mode, after the owner's settings.
        palace: None if the person has no palace and the request must not create one.
        place: None if memory is off.
        reader: Collects the reply; None if there is none.
        outcome: The call's outcome, for the meter.
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
    _started: float = field(default_factory=time.perf_counter)
    _once: threading.Lock = field(default_factory=threading.Lock)

    @property
    def recalls(self) -> bool:
        return self.mode in ("on", "recall")

    @property
    def remembers(self) -> bool:
        return self.mode in ("on", "remember")

    def headers(self) -> dict[str, str]:
        headers = {"X-Loci-Memory": self.mode}
        if self.place is not None:
            headers["X-Loci-Conversation"] = self.place.conversation
        if self.found is not None:
            headers["X-Loci-Recollection"] = str(self.found.uuid)
        return headers

    def finish(self, status: Message.Status = Message.Status.DONE) -> None:
        """Keep the reply as far as it came, and meter the call. Only the first time counts.

        Args:
            status: Of the reply, where it did not come to its end.
        """
        if not self._once.acquire(blocking=False):
            return
        if self.endpoint is not None:
            concurrency.give_back(self.owner_id)
        try:
            with a_moments_connection():
                self._keep(status)
                self._meter(status)
        except (OperationalError, InterfaceError):
            # The program has the reply and repeats it in its next request.
            logger.exception("A forwarded reply was not filed: the database is unavailable.")

    def _keep(self, status: Message.Status) -> None:
        if not self.remembers or self.palace is None or self.place is None:
            return
        reader = self.reader
        if reader is None or not reader.text.strip():
            with transaction.atomic():
                message_filing.mine_when_at_rest(self.place.room)
            return
        kept_with = self._kept_with(reader, status)
        reply = Said("assistant", reader.text)
        try:
            message_filing.keep_reply(
                self.palace, self.place, self.history, reply, timezone.now(), kept_with
            )
        except Palace.DoesNotExist:
            logger.info("A palace was deleted while a reply for it was forwarded.")

    def _kept_with(self, reader: ReplyReader, status: Message.Status) -> dict[str, str]:
        metadata = {"model": reader.model}
        if self.found is not None:
            metadata["recollection"] = str(self.found.uuid)
        if not reader.whole:
            metadata["status"] = status.value
        return {name: value for name, value in metadata.items() if value}

    def _meter(self, status: Message.Status) -> None:
        if self.endpoint is None:
            return
        meter = usage.Meter(outcome=self.outcome)
        meter.duration_ms = (time.perf_counter() - self._started) * 1000
        if self.reader is not None:
            fill_meter(meter, self.reader.usage, self._prompt(), self.reader.text)
            if status is Message.Status.STOPPED and not self.reader.whole:
                meter.outcome = usage.CANCELLED
        usage.keep(
            meter,
            purpose=Usage.Purpose.CHAT,
            provider=self.endpoint.provider,
            model=self.chat_request.model(self.endpoint.model),
            owner_id=self.owner_id,
        )

    def _prompt(self) -> list[Prompt]:
        """The prompt, to estimate its tokens if the provider does not count them."""
        texts = [text_of(message.get("content")) for message in self.chat_request.messages]
        context = self.found.context if self.found else ""
        return [{"role": "user", "content": text} for text in [context, *texts]]


def let_go_of_connection() -> None:
    """Release the database connection before a model's reply, which may take minutes."""
    connection.close()
