"""The drawer of a message, and the facts learnt from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chat.mining_queue import SOURCE, adopt_title, is_automatic, keep_message, mark_due
from chat.models import Message
from isolation.raw_sql import Part, all_but, columns_of, fetch_instances
from language.english.grammatical_person import to_third_person
from llm.deadline import within
from palace.curation.deletion import delete_fact, restore_fact
from palace.curation.trash import drawers_in, move_to_trash, restore, ruled_out
from palace.knowledge.facts import Scope
from palace.knowledge.facts.fact_edits import rewrite
from palace.mining import tasks
from palace.mining.pipeline import mine_and_learn
from palace.models import Drawer, Evidence, Fact, Palace

# How long a reader waits for facts before the rest is left to the worker.
REMEMBER_S = 8
# What a page reads of each message's drawer; what changes one reads the rest.
_READ: tuple[Part, ...] = (
    (
        *(Drawer, "d"),
        all_but(Drawer, "id uuid palace_id room_id external_id filed_at facts_read_at trashed_at"),
    ),
)
_DRAWERS = (
    f"SELECT {columns_of(_READ)} FROM palace_drawer d WHERE d.palace_id = %s AND d.source = %s"  # noqa: S608 - of the model.
    " AND d.conversation = ANY(%s::text[]) AND d.external_id = ANY(%s::text[])"
)


class State(StrEnum):
    """Whether a message is in the palace, on its way there, or neither."""

    WAITING = "waiting"
    KEPT = "kept"
    FORGOTTEN = "forgotten"
    GONE = "gone"
    OFF = "off"
    NONE = ""


@dataclass(frozen=True, slots=True)
class MessageMemory:
    """
    Attributes:
        facts: The current versions of the facts learnt from it, undone ones included.
        is_learning: Whether more facts may still be learnt from it.
        by_rule: It is forgotten by the keeping rule of its wing.
    """

    state: State
    drawer: Drawer | None = None
    facts: tuple[Fact, ...] = ()
    is_learning: bool = False
    by_rule: bool = False

    @property
    def active(self) -> int:
        return sum(fact.retired_at is None for fact in self.facts)


def memories_of(palace: Palace, messages: Sequence[Message]) -> dict[int, MessageMemory]:
    """What the palace has of each message, by its key; in a fixed number of queries."""
    # Their conversations are named, though the ids would do: the index begins with them.
    given = [
        *(palace.pk, SOURCE, list({str(message.conversation.uuid) for message in messages})),
        [str(message.uuid) for message in messages],
    ]
    drawers = {each.external_id: each for (each,) in fetch_instances(_DRAWERS, given, _READ)}
    facts = _facts_learnt(palace, drawers.values())
    found_of = [(message, drawers.get(str(message.uuid))) for message in messages]
    unread = {message.pk for message, drawer in found_of if _is_unread(message, drawer)}
    learns = bool(unread) and is_automatic(palace.owner_id)
    moments = {drawer.trashed_at for drawer in drawers.values() if drawer.trashed_at}
    ruled = ruled_out(palace, moments) if moments else set()
    return {
        message.pk: MessageMemory(
            _state(message, drawer),
            drawer,
            tuple(facts.get(drawer.pk, ())) if drawer else (),
            is_learning=learns and message.pk in unread,
            by_rule=drawer is not None and drawer.trashed_at in ruled,
        )
        for message, drawer in found_of
    }


def memory_of(message: Message) -> MessageMemory:
    return memories_of(message.conversation.palace, [message])[message.pk]


def _is_unread(message: Message, drawer: Drawer | None) -> bool:
    state = _state(message, drawer)
    is_read = drawer is not None and drawer.facts_read_at is not None
    return state == State.WAITING or (state == State.KEPT and not is_read)


def _state(message: Message, drawer: Drawer | None) -> State:
    if drawer is not None:
        return State.FORGOTTEN if drawer.trashed_at else State.KEPT
    if message.mined_at:
        return State.GONE
    says = message.mine and message.status in Message.SAID and message.text
    if not says or message.replaced_at:
        return State.NONE
    return State.OFF if message.off_record else State.WAITING


def _facts_learnt(palace: Palace, drawers: Collection[Drawer]) -> dict[int, list[Fact]]:
    """The facts first learnt from each drawer, by its key; not those that it only repeats."""
    filed = {drawer.pk: drawer.filed_at for drawer in drawers}
    rows = Evidence.objects.filter(palace=palace, drawer__in=filed)
    found: defaultdict[int, dict[UUID, None]] = defaultdict(dict)
    for drawer, memory, recorded_at in rows.order_by("start", "pk").values_list(
        "drawer_id", "fact__memory", "fact__recorded_at"
    ):
        if recorded_at >= filed[drawer]:
            found[drawer][memory] = None
    latest = _latest(palace, {memory for each in found.values() for memory in each})
    return {
        drawer: [latest[memory] for memory in each if memory in latest]
        for drawer, each in found.items()
    }


def _latest(palace: Palace, memories: Iterable[UUID]) -> dict[UUID, Fact]:
    """The current versions of the facts, without replaced ones."""
    wanted = list(memories)
    versions = Fact.objects.within(palace).latest_versions(wanted) if wanted else ()
    return {
        fact.memory: fact
        for fact in versions
        if fact.retired_at is None or fact.fate == Fact.Fate.DELETED
    }


def remember_message(message: Message) -> None:
    """File the message, mine it and learn its facts now. Call it outside of a transaction.

    Raises:
        Conversation.DoesNotExist: it has been deleted.
        QuotaExceeded: it does not fit in the palace.
    """
    palace = message.conversation.palace
    drawer = memory_of(message).drawer
    if drawer is not None:
        room = drawer.room
        if drawer.trashed_at:
            restore(palace, drawers_in(drawer))
    else:
        kept = keep_message(message)
        if kept.room is None:
            return
        room = kept.room
    with within(REMEMBER_S):
        mine_and_learn(room)
    adopt_title(message.conversation, room)
    if Drawer.objects.within(palace).filter(room=room, mined_at=None).exists():
        tasks.enqueue_mining([room.pk])


@transaction.atomic
def forget_message(message: Message) -> None:
    """Move its drawer, with the facts that rest on it alone, to the trash; or never file it."""
    palace = message.conversation.palace
    palace.lock()
    message.refresh_from_db()
    memory = memory_of(message)
    if memory.drawer is not None:
        move_to_trash(memory.drawer)
    elif message.mined_at is None:
        _set_off_record(message, off_record=True)


def take_back(message: Message) -> None:
    """Undo `forget_message()`."""
    palace = message.conversation.palace
    memory = memory_of(message)
    if memory.drawer is not None:
        tasks.enqueue_mining(restore(palace, drawers_in(memory.drawer)).unmined)
        return
    with transaction.atomic():
        _set_off_record(message, off_record=False)
        mark_due(message.conversation, timezone.now())


def _set_off_record(message: Message, *, off_record: bool) -> None:
    same = Message.objects.filter(palace=message.palace_id, pk=message.pk, mined_at=None)
    same.update(off_record=off_record)


def edit_fact(palace: Palace, fact: Fact, text: str) -> None:
    """
    Raises:
        NoSuchFact: it is not active any more.
        FactConflict: another active fact states the only possible value.
    """
    rewrite(palace, fact.memory, to_third_person(text, like=fact.text), _scope(fact))


def undo_fact(palace: Palace, fact: Fact) -> None:
    """Delete the learnt fact and restore the facts it had ended; its message stays.

    Raises:
        NoSuchFact: it is not active any more.
    """
    delete_fact(palace, fact.memory, _scope(fact), doors=())


def redo_fact(palace: Palace, fact: Fact) -> None:
    """
    Raises:
        FactConflict: something else is active in its place.
    """
    restore_fact(palace, fact, _scope(fact))


def _scope(fact: Fact) -> Scope:
    return Scope("person", fact.agent, fact.run)
