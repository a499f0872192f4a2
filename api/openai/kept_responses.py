"""Responses stored for a day, which programs continue or refer to by id.

A response is kept for a day where answers to writes are: with the deletion of any memory of its
owner it goes too, as it may hold the same words. What a model said is in its drawer after that.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from api.openai.conversation_matching import SOURCE
from api.rest.problems import Problem
from palace.models import WRITES_KEPT_FOR, Drawer, IdempotentWrite, Palace
from settings_app.api_keys import ApiKey

logger = logging.getLogger(__name__)

# The metadata key of a reply for its response.
RESPONSE = "response"
_ITEM = re.compile(r"(msg|fc)_([0-9a-f]{32})_[0-9]+")
_MOST_CHARS = 200

Chat = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """
    Attributes:
        messages: In the chat format, without instructions, with the reply.
        conversation: The id under which they are filed.
        items: The parts of the reply as messages, by their ids.
    """

    messages: list[Chat]
    conversation: str
    items: dict[str, Chat]


def keep(palace: Palace, response_id: str, response: KeptResponse) -> None:
    body = {
        "messages": response.messages,
        "conversation": response.conversation,
        "items": response.items,
    }
    try:
        with transaction.atomic():
            IdempotentWrite.objects.create(
                owner_id=palace.owner_id,
                key=response_id,
                fingerprint=_fingerprint(palace.subject),
                status=200,
                body=body,
            )
    except IntegrityError:
        logger.info("The account was deleted while a response was made.")


def previous_response(key: ApiKey, subject: str, response_id: str) -> KeptResponse:
    """
    Raises:
        Problem: 404, there is none for this person.
    """
    kept = next(_kept(key, subject, [response_id[:_MOST_CHARS]]), None)
    if kept is not None:
        return kept
    said = (
        f"There is no response {response_id[:80]} to continue. A response is kept for "
        f"{WRITES_KEPT_FOR.days} day, unless memory was off, “store” was false or a memory was "
        "deleted meanwhile. Send the whole conversation as input."
    )
    raise Problem(404, "previous_response_not_found", said)


def referenced_items(key: ApiKey, subject: str, ids: Iterable[str]) -> dict[str, Chat]:
    """Those of the parts of earlier responses that are there, as messages."""
    wanted = {each: match for each in ids if (match := _ITEM.fullmatch(each))}
    if not wanted:
        return {}
    found: dict[str, Chat] = {}
    for kept in _kept(key, subject, {f"resp_{match[2]}" for match in wanted.values()}):
        found |= kept.items
    older = {
        f"resp_{match[2]}": each
        for each, match in wanted.items()
        if each not in found and match[1] == "msg"
    }
    palace = Palace.objects.filter(owner=key.owner_id, subject=subject).first()
    if older and palace is not None:
        filed = Drawer.objects.within(palace).kept().filter(source=SOURCE, role="assistant")
        filed = filed.filter(metadata__response__in=list(older))
        for name, text in filed.values_list(f"metadata__{RESPONSE}", "text"):
            found[older[name]] = {"role": "assistant", "content": text}
    return found


def _kept(key: ApiKey, subject: str, names: Iterable[str]) -> Iterator[KeptResponse]:
    writes = IdempotentWrite.objects.filter(
        owner=key.owner_id,
        key__in=list(names),
        fingerprint=_fingerprint(subject),
        claimed_at__gt=timezone.now() - WRITES_KEPT_FOR,
    )
    for body in writes.values_list("body", flat=True):
        if isinstance(body, Mapping):
            yield KeptResponse(body["messages"], body["conversation"], body["items"])


def _fingerprint(subject: str) -> str:
    """Identifies the palace that a response belongs to."""
    return hashlib.sha256(f"response\0{subject}".encode()).hexdigest()
