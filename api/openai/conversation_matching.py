"""Which conversation a proxied request continues, and which of its messages are filed already.

A request has the whole conversation or its end, and seldom an id. Its messages are aligned with the
filed ones of the conversations that have some of its words.

Or it names the response before it, or a part of one. A response is kept for a day where answers to
writes are: with the deletion of any memory of its owner it goes too, as it may hold the same words.
What a model said is in its drawer after that.
"""

from __future__ import annotations

import hashlib
import logging
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction
from django.db.models import Count, Max
from django.utils import timezone

from api.openai.chat_request import History, Said
from api.rest.problems import Problem
from palace.models import WRITES_KEPT_FOR, Drawer, IdempotentWrite, Palace, Room
from settings_app.api_keys import ApiKey

logger = logging.getLogger(__name__)

SOURCE = "proxy"
# How many candidate conversations are compared, and how many messages of each.
MOST_CANDIDATES, MOST_ALIGNED = 3, 4096
# The same opening message within this time is a retry, not a new conversation.
SAME_REQUEST = timedelta(minutes=10)
# Above these numbers of equal pairs or messages the optimal alignment is too slow (their product);
# a greedy one is used.
MOST_PAIRS = 200_000
MOST_MESSAGES = 4_000
Words = tuple[str, str]
# The metadata key of a reply for its response.
RESPONSE = "response"
_ITEM = re.compile(r"(msg|fc)_([0-9a-f]{32})_[0-9]+")
_MOST_CHARS = 200

Chat = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FiledMessage:
    """A filed message.

    Attributes:
        cut_off: Whether it is an interrupted reply, of which the program may have less.
    """

    key: int
    id: str
    said: Said
    position: int
    said_at: datetime
    cut_off: bool = False


def find_conversation(palace: Palace, history: History, now: datetime) -> str:
    """The conversation with most of the earlier messages; else a new one, named by its opening."""
    for candidate in _candidates(palace, history):
        filed = filed_messages(palace, candidate)
        same = is_same_opening if history.opening else partial(_continues, palace, candidate)
        if same(history, filed, now):
            return candidate
    first = history.said[0].id if history.said else uuid4().hex
    return _free_name(palace, first)


def _continues(
    palace: Palace,
    conversation: str,
    history: History,
    filed: Sequence[FiledMessage],
    now: datetime,
) -> bool:
    """Whether the request continues this conversation: it repeats all that is filed there, or most
    of its earlier messages are filed there (its last reply may not be yet)."""
    aligned = align(history, filed, now)
    if sum(each is not None for each in aligned) == len(filed):
        return True
    before = aligned[: history.answered]
    # Purged messages are missing, although the request has them.
    least = len(before) + (0 if was_purged(palace, conversation) else 1)
    return 2 * sum(each is not None for each in before) >= least


def _candidates(palace: Palace, history: History) -> list[str]:
    """Conversations with some of the messages, most first, then latest."""
    words = history.said if history.opening else history.said[: history.answered]
    found = Drawer.objects.within(palace).filter(
        source=SOURCE, external_id__in={each.id for each in words}
    )
    counted = (
        found.order_by().values("conversation").annotate(shared=Count("pk"), latest=Max("said_at"))
    )
    rows = counted.order_by("-shared", "-latest").values_list("conversation", flat=True)
    return list(rows[:MOST_CANDIDATES])


def _free_name(palace: Palace, name: str) -> str:
    drawers = Drawer.objects.within(palace).filter(source=SOURCE, conversation__startswith=name)
    taken = set(drawers.order_by().values_list("conversation", flat=True).distinct())
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def was_purged(palace: Palace, conversation: str) -> bool:
    """Whether part of it was purged, but not all."""
    rooms = Room.objects.within(palace).filter(source=SOURCE, external_id=conversation)
    return rooms.filter(highest_drawer__gt=0).exists()


def filed_messages(palace: Palace, conversation: str) -> list[FiledMessage]:
    """The conversation's filed messages in order, trash included."""
    drawers = Drawer.objects.within(palace).filter(source=SOURCE, conversation=conversation)
    latest = list(drawers.order_by("-position", "-pk")[:MOST_ALIGNED])
    return [_filed_message(drawer) for drawer in reversed(latest)]


def _filed_message(drawer: Drawer) -> FiledMessage:
    role: Any = drawer.role
    return FiledMessage(
        drawer.pk,
        drawer.external_id,
        Said(role, drawer.text, drawer.speaker),
        drawer.position,
        drawer.said_at,
        cut_off="status" in (drawer.metadata or {}),
    )


def align(
    history: History, filed: Sequence[FiledMessage], now: datetime
) -> list[FiledMessage | None]:
    """For each message of the request, the filed one it matches, or None if it is new.

    Messages match by role, words and order. So a later repetition is new, and so is an edited
    message; and a program may omit any.
    """
    first = 0
    if history.opening and len(history.said) == 1:
        # Without any history, only the last input can match.
        first = _last_input(filed, now)
    return _aligned(history.said, filed[first:])


def is_same_opening(history: History, filed: Sequence[FiledMessage], now: datetime) -> bool:
    """Whether this repeats the request that opened the conversation."""
    inputs = [each for each in filed if each.said.role != "assistant"]
    same = [each.said.words for each in inputs] == [each.words for each in history.said]
    return same and bool(inputs) and now - inputs[-1].said_at < SAME_REQUEST


def _last_input(filed: Sequence[FiledMessage], now: datetime) -> int:
    """Index of the last input, before its replies; the end if it is older than a retry."""
    place = len(filed)
    while place and filed[place - 1].said.role == "assistant":
        place -= 1
    if not place or now - filed[place - 1].said_at >= SAME_REQUEST:
        return len(filed)
    return place - 1


def _aligned(said: Sequence[Said], filed: Sequence[FiledMessage]) -> list[FiledMessage | None]:
    words = [each.said.words for each in filed]
    said_words = _filed_words(said, filed, set(words))
    aligned: list[FiledMessage | None] = [None] * len(said)
    for place, place_filed in _pairs(said_words, words):
        aligned[place] = filed[place_filed]
    return aligned


def _pairs(said_words: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Pairs of indices of equal messages, increasing in both lists."""
    counts = Counter(words)
    is_many = len(said_words) + len(words) > MOST_MESSAGES
    if is_many or sum(counts[each] for each in said_words) > MOST_PAIRS:
        yield from _next_of_each(said_words, words)
        return
    matcher = SequenceMatcher(None, said_words, words, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step


def _next_of_each(said_words: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Greedy: pair each message with the next equal one."""
    places: defaultdict[Words, list[int]] = defaultdict(list)
    for place, each in enumerate(words):
        places[each].append(place)
    least = 0
    for place, each in enumerate(said_words):
        known = places.get(each, [])
        found = bisect_left(known, least)
        if found < len(known):
            yield place, known[found]
            least = known[found] + 1


def _filed_words(
    said: Sequence[Said], filed: Sequence[FiledMessage], words: set[Words]
) -> list[Words]:
    """Their words; for the beginning of an interrupted reply, the filed reply's words."""
    cut_off = sorted((each.said.text, each.said.words) for each in filed if each.cut_off)
    return [
        each.words
        if each.role != "assistant" or each.words in words
        else _interrupted_reply(each.text.strip(), cut_off) or each.words
        for each in said
    ]


def _interrupted_reply(beginning: str, cut_off: Sequence[tuple[str, Words]]) -> Words | None:
    """Find the filed reply that begins with these words; `cut_off` is sorted by beginning."""
    place = bisect_left(cut_off, (beginning, ("", "")))
    if place < len(cut_off) and cut_off[place][0].startswith(beginning):
        return cut_off[place][1]
    return None


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
