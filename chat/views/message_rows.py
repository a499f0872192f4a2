"""Messages as pages show them: each reply with what was remembered for it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import redis
from django.db.models import F
from django.utils import timezone
from django.utils.safestring import SafeString

from chat import live_reply
from chat.markdown import pointers_in, render_markdown
from chat.message_memory import MessageMemory, State, memories_of
from chat.models import Conversation, Message
from isolation.raw_sql import Part, all_but, columns_of, fetch_instances, fetch_rows
from palace.models import Drawer, Fact, HitsField, Palace, Room, Wing
from palace.recall.recipes import SIGNALS
from palace.recall.trace import SHOWN

# Messages shown at once; the earlier ones are a click away.
PAGE_SIZE = 10
# Replies of up to so many characters are drawn once, and kept for a while: they do not change.
KEPT_DRAWN, KEPT_LENGTH = 500, 10_000
_TRIES = """
SELECT position, count(*) FROM chat_message
WHERE palace_id = %s AND conversation_id = %s AND replaced_at IS NOT NULL GROUP BY position
"""
_GIVEN = """
SELECT uuid, hits, facts, carried FROM palace_recollectiontrace
WHERE palace_id = %s AND uuid = ANY(%s::uuid[])
"""
# Signals named with a memory.
REASONS = 2
# Seconds until the page asks for the first time what was learnt from a message.
FIRST_POLL_S = 4
# Older messages have been mined, or wait for a worker that is away.
LEARNING = timedelta(minutes=10)
# Characters and lines of a question that stays in view.
SHORT, SHORT_LINES = 240, 4


def last_position(conversation: Conversation) -> int:
    said = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    places = said.current().order_by("-position").values_list("position", flat=True)
    return places.first() or 0


def page_with(message: Message, conversation: Conversation, last: int) -> str:
    """The page of the conversation that shows a message, with some that follow.

    Args:
        last: The conversation's last position.
    """
    is_on_first = message.position > last - PAGE_SIZE
    query = "" if is_on_first else f"?before={message.position + PAGE_SIZE // 2}"
    return f"{conversation.get_absolute_url()}{query}#{message.anchor}"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A drawer that was recalled for a reply.

    Attributes:
        drawer: None once it is in the trash or gone.
        why: The signals that spoke most for it, in words.
        cited: Whether the reply names its pointer.
        again: Whether an earlier message had brought it already.
        outdated_since: When a fact that it states ended; None if none has.
    """

    pointer: str
    drawer: Drawer | None
    why: str
    cited: bool
    again: bool = False
    outdated_since: datetime | None = None


NOTHING = MessageMemory(State.NONE)


@dataclass(frozen=True, slots=True)
class Row:
    """A message with everything the page shows with it.

    Attributes:
        recalled_number: How many drawers were recalled for a reply.
        carries: Whether the model still sees something from earlier messages.
        known: The facts that a reply was given, as they are now.
        remembered: These drawers, the cited ones first; none of a folded row.
        carried: Drawers from earlier messages that the model still sees; `carried_known`: facts.
        is_folded: Its memories come when they are unfolded.
    """

    message: Message
    html: SafeString | str
    known: tuple[Fact, ...]
    remembered: tuple[Remembered, ...]
    recalled: bool
    tries: int
    recalled_number: int = 0
    carries: bool = False
    carried: tuple[Remembered, ...] = ()
    carried_known: tuple[Fact, ...] = ()
    is_last: bool = False
    is_folded: bool = False
    memory: MessageMemory = NOTHING

    @property
    def poll_in(self) -> int | None:
        """Seconds until the page asks what was learnt; None if nothing more comes."""
        lately = timezone.now() - self.message.said_at < LEARNING
        asks = lately and self.memory.is_learning and self.message.role == "user"
        return FIRST_POLL_S if asks else None

    @property
    def is_short(self) -> bool:
        """Whether there is room for it above its reply."""
        return len(self.message.text) <= SHORT and self.message.text.count("\n") < SHORT_LINES


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some messages of a conversation, oldest first.

    Attributes:
        before: The position before which there are more; None where there are none.
        is_end: Whether there are none after these.
        has_replaced: Whether any message of the conversation was replaced, also one not shown.
    """

    rows: tuple[Row, ...]
    before: int | None
    is_end: bool
    has_replaced: bool

    @property
    def last(self) -> int | None:
        return self.rows[-1].message.position if self.rows else None

    @property
    def question(self) -> Message | None:
        """The last one of these messages that the user said."""
        return next((r.message for r in reversed(self.rows) if r.message.role == "user"), None)

    @property
    def is_growing(self) -> bool:
        return any(each.message.is_writing for each in self.rows)


def question_url(conversation: Conversation) -> str:
    """The conversation's page at its last question, for browsers without scripts."""
    messages = Message.objects.filter(palace=conversation.palace_id, conversation=conversation)
    question = messages.current().filter(role="user").order_by("-position").first()
    anchor = f"#{question.anchor}" if question else ""
    return f"{conversation.get_absolute_url()}{anchor}"


def stretch(conversation: Conversation, before: int | None = None) -> Excerpt:
    """The last messages, or the last ones before the position given."""
    newest_first = conversation.newest_messages(
        PAGE_SIZE + 1, sys.maxsize if before is None else before
    )
    shown = newest_first[:PAGE_SIZE][::-1]
    more = len(newest_first) > PAGE_SIZE
    tries = _tries(conversation)
    return Excerpt(
        tuple(rows(conversation, shown, ends_here=before is None, tries=tries)),
        shown[0].position if more else None,
        is_end=before is None,
        has_replaced=bool(tries),
    )


def row(conversation: Conversation, message: Message) -> Row:
    """The last message of its conversation."""
    return rows(conversation, [message], ends_here=True)[0]


def rows(
    conversation: Conversation,
    messages: Sequence[Message],
    *,
    ends_here: bool,
    tries: Mapping[int, int] | None = None,
) -> list[Row]:
    """
    Args:
        ends_here: The last of `messages` is the conversation's last.
        tries: `_tries` of all its messages, if they have been read.
    """
    palace = conversation.palace
    for message in messages:
        message.conversation = conversation  # Known already; saves a query for each.
    last = messages[-1] if messages and ends_here else None
    given = _given(palace, [m.recollection for m in messages if m.recollection])
    shown = [
        hit["drawer"]
        for message in messages
        if message.recollection in given
        for hit in _shown(given[message.recollection], message, is_whole=message is last)
    ]
    drawers = _drawers(palace, shown)
    facts = _facts(
        palace,
        [fact["memory"] for each in given.values() for fact in each.facts + each.carried_facts],
    )
    if tries is None:
        tries = _tries(conversation, [message.position for message in messages])
    memories = memories_of(palace, messages)
    return [
        _row(
            message,
            given.get(message.recollection) if message.recollection else None,
            drawers,
            facts,
            tries.get(message.position, 0),
            memory=memories[message.pk],
            is_last=message is last,
        )
        for message in messages
    ]


def _shown(given: _Given, message: Message, *, is_whole: bool) -> list[dict[str, Any]]:
    """The hits whose drawers are needed: all, or where the rest is folded those that it links."""
    if is_whole:
        return given.drawers
    named = pointers_in(message.text)
    return [hit for hit in given.drawers if hit["pointer"] in named] if named else []


def _row(
    message: Message,
    given: _Given | None,
    drawers: dict[str, Drawer],
    facts: dict[str, Fact],
    tries: int,
    *,
    memory: MessageMemory,
    is_last: bool,
) -> Row:
    text = _so_far(message) if message.is_writing else message.text
    brought = given or _Given([], [], [])
    pairs = [(hit, drawers.get(hit["drawer"])) for hit in brought.drawers]
    cited = pointers_in(text) if is_last else set()
    shown = [_remembered(hit, drawer, cited) for hit, drawer in pairs] if is_last else []
    places = {hit["pointer"]: drawer.get_absolute_url() for hit, drawer in pairs if drawer}
    return Row(
        message,
        _drawn(text, places) if message.role == "assistant" else text,
        _versions(brought.facts, facts),
        tuple(sorted(shown[: len(brought.hits)], key=lambda each: not each.cited)),
        given is not None,
        tries,
        recalled_number=len(brought.hits),
        carries=bool(brought.carried),
        carried=tuple(shown[len(brought.hits) :]),
        carried_known=_versions(brought.carried_facts, facts),
        is_last=is_last,
        is_folded=not is_last,
        memory=memory,
    )


def _versions(given: Iterable[dict[str, Any]], facts: dict[str, Fact]) -> tuple[Fact, ...]:
    """The facts of the trace as they are now, without purged ones."""
    found = (facts.get(fact["memory"]) for fact in given)
    return tuple(fact for fact in found if fact)


def _remembered(hit: dict[str, Any], drawer: Drawer | None, cited: set[str]) -> Remembered:
    since = hit.get("outdated_since")
    return Remembered(
        pointer=str(drawer.pointer) if drawer else hit["pointer"],
        drawer=drawer,
        why=_why(hit.get("signals", {})),
        cited=hit["pointer"] in cited,
        again=hit.get("cut") == SHOWN,
        outdated_since=datetime.fromisoformat(since) if since else None,
    )


def _drawn(text: str, places: dict[str, str]) -> SafeString:
    if len(text) > KEPT_LENGTH:
        return render_markdown(text, places)
    return _kept_drawn(text, tuple(places.items()))


@lru_cache(maxsize=KEPT_DRAWN)
def _kept_drawn(text: str, places: tuple[tuple[str, str], ...]) -> SafeString:
    return render_markdown(text, dict(places))


def _so_far(message: Message) -> str:
    try:
        return max(live_reply.text_so_far(message.uuid), message.text, key=len)
    except redis.RedisError:
        return message.text  # The whole text comes with the end of the reply.


@dataclass(frozen=True, slots=True)
class _Given:
    """What a recall brought, best first, and what stayed from before, by its trace."""

    hits: list[dict[str, Any]]
    facts: list[dict[str, Any]]
    carried: list[dict[str, Any]]

    @property
    def drawers(self) -> list[dict[str, Any]]:
        """The recalled drawers, then those that stayed."""
        return [*self.hits, *(each for each in self.carried if "memory" not in each)]

    @property
    def carried_facts(self) -> list[dict[str, Any]]:
        return [each for each in self.carried if "memory" in each]

    @property
    def all_facts(self) -> list[dict[str, Any]]:
        return [*self.facts, *self.carried_facts]


def _given(palace: Palace, uuids: Iterable[uuid.UUID]) -> dict[uuid.UUID, _Given]:
    wanted = list(uuids)
    rows = fetch_rows(_GIVEN, [palace.pk, wanted], prepared=True) if wanted else ()
    return {key: _Given(HitsField.unpacked(hits), *rest) for key, hits, *rest in rows}


def _facts(palace: Palace, memories: Iterable[str]) -> dict[str, Fact]:
    """By memory, its active version, or the last one of an inactive memory."""
    wanted = list(memories)
    if not wanted:
        return {}
    versions = Fact.objects.within(palace).filter(memory__in=wanted)
    newest = versions.order_by("memory", F("retired_at").desc(nulls_first=True), "-pk")
    return {str(fact.memory): fact for fact in newest.distinct("memory")}


def _drawers(palace: Palace, uuids: Iterable[str]) -> dict[str, Drawer]:
    """Those that are kept, by id, with their numbers and places."""
    found = {}
    given = {"palace": palace.pk, "drawers": list(uuids)}
    rows = fetch_instances(_kept(), given, _PLACED) if given["drawers"] else ()
    for drawer, room, wing in rows:
        room.wing, drawer.room = wing, room
        found[str(drawer.uuid)] = drawer
    return found


# What is shown of a drawer and its place.
_PLACED: tuple[Part, ...] = (
    (Drawer, "d", all_but(Drawer, "id uuid palace_id number role speaker text said_at")),
    (Room, "r", all_but(Room, "id palace_id number")),
    (Wing, "w", all_but(Wing, "id palace_id number")),
)


@cache
def _kept() -> str:
    """Written out: Django takes longer to put it together than the database to answer it."""
    return f"""
        SELECT {columns_of(_PLACED)} FROM palace_drawer d
        JOIN palace_room r ON r.palace_id = %(palace)s AND r.id = d.room_id
        JOIN palace_wing w ON w.palace_id = %(palace)s AND w.id = r.wing_id
        WHERE d.palace_id = %(palace)s AND d.uuid = ANY(%(drawers)s::uuid[])
            AND d.trashed_at IS NULL
    """  # noqa: S608 - put together from the models.


def _tries(conversation: Conversation, at: Collection[int] | None = None) -> dict[int, int]:
    """How many replies were replaced by another try, by position: at these, or at all."""
    given = [conversation.palace_id, conversation.pk]
    tries = dict(fetch_rows(_TRIES, given, prepared=True))
    return tries if at is None else {position: tries.get(position, 0) for position in at}


def _why(signals: dict[str, float]) -> str:
    """The strongest signals, in words: `meaning and words`."""
    ordered = sorted(signals, key=lambda name: -signals[name])
    named = [name for name in ordered if signals[name] > 0 and name in SIGNALS][:REASONS]
    return " and ".join(SIGNALS[name][0].lower() for name in named)
