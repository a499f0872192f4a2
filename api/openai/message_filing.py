"""File proxied messages into drawers: each once, although every request has the whole conversation.

The messages of a request are aligned with the filed ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import partial
from itertools import takewhile
from typing import Any
from uuid import uuid4

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max
from kombu.exceptions import OperationalError as QueueAway

from api.openai.chat_request import History, Said
from chat.models import title_of
from language.storable import storable_id
from language.transcripts import Transcript, Turn
from palace.models import Drawer, Palace, Room
from palace.pipeline import WINDOW
from palace.storage import file_transcript

SOURCE = "proxy"
# How many candidate conversations are compared, and how many messages of each.
LOOKED_AT, LAID_BESIDE = 3, 4096
Words = tuple[str, str]

# The same opening message within this time is a retry, not a new conversation.
SAME_REQUEST = timedelta(minutes=10)
# Above these numbers of equal pairs or messages the optimal alignment is too slow (their product);
# a greedy one is used.
MOST_PAIRS = 200_000
MOST_MESSAGES = 4_000


@dataclass(frozen=True, slots=True)
class Place:
    """A request's place in its conversation.

    Attributes:
        turn: The position of its last message; `since` that of its first.
        messages: Its filed messages, in order.
        room: The conversation's room, if anything of it is filed.
    """

    conversation: str
    turn: int
    since: int = 0
    messages: tuple[Kept, ...] = ()
    room: Room | None = None


def find_place(palace: Palace, history: History, named: str | None, now: datetime) -> Place:
    """Find its place without filing anything."""
    conversation = storable_id(named) if named else _conversation(palace, history, now)
    laid = lay(history, kept_of(palace, conversation), now)
    return _place(conversation, history, [each for each in laid if each])


@transaction.atomic
def file_messages(palace: Palace, history: History, named: str | None, now: datetime) -> Place:
    """File the new messages verbatim.

    Raises:
        QuotaExceeded: they do not fit in the palace.
    """
    palace.lock()
    conversation = storable_id(named) if named else _conversation(palace, history, now)
    kept = kept_of(palace, conversation)
    laid = lay(history, kept, now)
    turns = _turns(palace, conversation, history, laid, kept, now)
    if not turns:
        return _place(conversation, history, [])
    room = file_transcript(palace, _transcript(conversation, history, turns)).room
    ids = {turn.external_id for turn in turns}
    now_kept = [each for each in kept_of(palace, conversation) if each.id in ids]
    return _place(conversation, history, now_kept, room)


@transaction.atomic
def keep_reply(
    palace: Palace,
    place: Place,
    history: History,
    reply: Said,
    now: datetime,
    metadata: Mapping[str, Any],
) -> None:
    """File the reply after the message it answers, and queue mining for when the room is idle."""
    palace.lock()
    kept = kept_of(palace, place.conversation)
    messages, replies = _still_kept(place, kept)
    known = [_turn(each.id, each.said, each.said_at) for each in (*messages, *replies)]
    if reply.words not in [each.said.words for each in replies]:
        new = _free_id(reply, {each.id for each in kept})
        known.append(_turn(new, reply, now, metadata))
    transcript = _transcript(place.conversation, history, known)
    room = file_transcript(palace, transcript, beyond_quota=True).room
    mine_when_at_rest(room)


def _still_kept(place: Place, kept: Sequence[Kept]) -> tuple[list[Kept], list[Kept]]:
    """The request's filed messages, and replies to them that are filed already, by a retry or by
    the program's next request."""
    ids = {each.id for each in place.messages}
    messages = [each for each in kept if each.id in ids]
    after = kept[kept.index(messages[-1]) + 1 :] if messages else ()
    return messages, list(takewhile(lambda each: each.said.role == "assistant", after))


def mine_when_at_rest(room: Room | None) -> None:
    """Queue mining when this transaction commits, without delay if a full window is waiting.

    If the queue is unavailable, the periodic task mines it later.
    """
    if room is None:
        return
    unmined = Drawer.objects.unmined().filter(palace=room.palace_id, room=room)
    waiting, last = unmined.count(), unmined.aggregate(Max("pk"))["pk__max"]
    if last is None:
        return
    rest_s = 0 if waiting >= WINDOW else settings.MINE_AFTER_S
    transaction.on_commit(partial(_queue, room.pk, last, rest_s))


def kept_of(palace: Palace, conversation: str) -> list[Kept]:
    """The conversation's filed messages in order, trash included."""
    drawers = Drawer.objects.within(palace).filter(source=SOURCE, conversation=conversation)
    latest = list(drawers.order_by("-position", "-pk")[:LAID_BESIDE])
    return [_kept(drawer) for drawer in reversed(latest)]


def _kept(drawer: Drawer) -> Kept:
    role: Any = drawer.role
    return Kept(
        drawer.pk,
        drawer.external_id,
        Said(role, drawer.text, drawer.speaker),
        drawer.position,
        drawer.said_at,
        cut_off="status" in (drawer.metadata or {}),
    )


def _conversation(palace: Palace, history: History, now: datetime) -> str:
    """The conversation with most of the earlier messages; else a new one, named by its opening."""
    for candidate in _candidates(palace, history):
        kept = kept_of(palace, candidate)
        same = is_same_opening if history.opening else partial(_goes_on, palace, candidate)
        if same(history, kept, now):
            return candidate
    first = history.said[0].id if history.said else uuid4().hex
    return _free_name(palace, first)


def _goes_on(
    palace: Palace, conversation: str, history: History, kept: Sequence[Kept], now: datetime
) -> bool:
    """Whether the request continues this conversation: it repeats all that is filed there, or most
    of its earlier messages are filed there (its last reply may not be yet)."""
    laid = lay(history, kept, now)
    if sum(each is not None for each in laid) == len(kept):
        return True
    before = laid[: history.answered]
    # Purged messages are missing, although the request has them.
    least = len(before) + (0 if _was_purged(palace, conversation) else 1)
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
    return list(rows[:LOOKED_AT])


def _free_name(palace: Palace, name: str) -> str:
    drawers = Drawer.objects.within(palace).filter(source=SOURCE, conversation__startswith=name)
    taken = set(drawers.order_by().values_list("conversation", flat=True).distinct())
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _turns(
    palace: Palace,
    conversation: str,
    history: History,
    laid: Sequence[Kept | None],
    kept: Sequence[Kept],
    now: datetime,
) -> list[Turn]:
    """The request's messages as turns, with filed messages' ids; without purged ones."""
    begins = _first_to_keep(palace, conversation, history, laid)
    ids = {each.id for each in kept}
    turns = []
    # A moment apart, so that by time they are in order as well.
    moments = (now - timedelta(microseconds=left) for left in range(len(laid), 0, -1))
    for place, (said, known, moment) in enumerate(zip(history.said, laid, moments, strict=True)):
        if known:
            turns.append(_turn(known.id, known.said, known.said_at))
        elif place >= begins:
            name = _free_id(said, ids)
            ids.add(name)
            turns.append(_turn(name, said, moment))
    return turns


def _first_to_keep(
    palace: Palace, conversation: str, history: History, laid: Sequence[Kept | None]
) -> int:
    """Index of the first message to file. If part of the conversation was purged, a missing message
    may be a purged one: then only those after the last known one are new."""
    if not _was_purged(palace, conversation):
        return 0
    known = [place for place, each in enumerate(laid) if each]
    return max([history.answered, *(place + 1 for place in known)])


def _was_purged(palace: Palace, conversation: str) -> bool:
    """Whether part of it was purged, but not all."""
    rooms = Room.objects.within(palace).filter(source=SOURCE, external_id=conversation)
    return rooms.filter(highest_drawer__gt=0).exists()


def _free_id(said: Said, taken: set[str]) -> str:
    number, free = 1, said.id
    while free in taken:
        number += 1
        free = f"{said.id}-{number}"
    return free


def _turn(
    name: str, said: Said, moment: datetime, metadata: Mapping[str, Any] | None = None
) -> Turn:
    return Turn(name, said.role, said.text, moment, said.speaker, metadata)


def _transcript(conversation: str, history: History, turns: Sequence[Turn]) -> Transcript:
    first = next((each.text for each in history.said if each.role == "user"), "")
    return Transcript(SOURCE, conversation, title_of(first), tuple(turns))


def _place(
    conversation: str, history: History, messages: Sequence[Kept], room: Room | None = None
) -> Place:
    if not messages:
        return Place(conversation, max(len(history.said) - 1, 0), room=room)
    positions = [each.position for each in messages]
    return Place(conversation, max(positions), min(positions), tuple(messages), room)


def _queue(room_id: int, last: int, rest_s: float) -> None:
    try:
        current_app.send_task(
            "chat.tasks.mine_proxied", [room_id, last], countdown=rest_s, ignore_result=True
        )
    except QueueAway:
        return


@dataclass(frozen=True, slots=True)
class Kept:
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


def lay(history: History, kept: Sequence[Kept], now: datetime) -> list[Kept | None]:
    """For each message of the request, the filed one it matches, or None if it is new.

    Messages match by role, words and order. So a later repetition is new, and so is an edited
    message; and a program may omit any.
    """
    first = 0
    if history.opening and len(history.said) == 1:
        # Without any history, only the last input can match.
        first = _last_input(kept, now)
    return _laid(history.said, kept[first:])


def is_same_opening(history: History, kept: Sequence[Kept], now: datetime) -> bool:
    """Whether this repeats the request that opened the conversation."""
    kept_words = [each for each in kept if each.said.role != "assistant"]
    same = [each.said.words for each in kept_words] == [each.words for each in history.said]
    return same and bool(kept_words) and now - kept_words[-1].said_at < SAME_REQUEST


def _last_input(kept: Sequence[Kept], now: datetime) -> int:
    """Index of the last input, before its replies; the end if it is older than a retry."""
    place = len(kept)
    while place and kept[place - 1].said.role == "assistant":
        place -= 1
    if not place or now - kept[place - 1].said_at >= SAME_REQUEST:
        return len(kept)
    return place - 1


def _laid(said: Sequence[Said], kept: Sequence[Kept]) -> list[Kept | None]:
    words = [each.said.words for each in kept]
    kept_words = _as_kept(said, kept, set(words))
    laid: list[Kept | None] = [None] * len(said)
    for place, place_kept in _pairs(kept_words, words):
        laid[place] = kept[place_kept]
    return laid


def _pairs(kept_words: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Pairs of indices of equal messages, increasing in both lists."""
    counts = Counter(words)
    is_many = len(kept_words) + len(words) > MOST_MESSAGES
    if is_many or sum(counts[each] for each in kept_words) > MOST_PAIRS:
        yield from _next_of_each(kept_words, words)
        return
    matcher = SequenceMatcher(None, kept_words, words, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step


def _next_of_each(kept_words: Sequence[Words], words: Sequence[Words]) -> Iterator[tuple[int, int]]:
    """Greedy: pair each message with the next equal one."""
    places: defaultdict[Words, list[int]] = defaultdict(list)
    for place, each in enumerate(words):
        places[each].append(place)
    least = 0
    for place, each in enumerate(kept_words):
        known = places.get(each, [])
        found = bisect_left(known, least)
        if found < len(known):
            yield place, known[found]
            least = known[found] + 1


def _as_kept(said: Sequence[Said], kept: Sequence[Kept], words: set[Words]) -> list[Words]:
    """Their words; for the beginning of an interrupted reply, the filed reply's words."""
    cut_off = sorted((each.said.text, each.said.words) for each in kept if each.cut_off)
    return [
        each.words
        if each.role != "assistant" or each.words in words
        else _continued(each.text.strip(), cut_off) or each.words
        for each in said
    ]


def _continued(beginning: str, cut_off: Sequence[tuple[str, Words]]) -> Words | None:
    """Find the filed reply that begins with these words; `cut_off` is sorted by beginning."""
    place = bisect_left(cut_off, (beginning, ("", "")))
    if place < len(cut_off) and cut_off[place][0].startswith(beginning):
        return cut_off[place][1]
    return None
