"""A palace as after years of use: conversations from a seed, mined, and all other rows.

Some of the conversations state facts, which the product's own rules read.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain, cycle, islice
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import F
from django.db.models.functions import Mod
from django.utils.text import slugify
from tqdm import tqdm

from bench.mined_rows import mine_alike
from bench.synthetic_rows import tidy
from chat.models import Agent, Conversation, Message
from language.transcripts import Role, Transcript, Turn
from llm.models import Usage
from palace.knowledge.dreaming import After, Finding, Kind, Quote, propose
from palace.knowledge.facts import learn_room
from palace.mining.pipeline import mine_many
from palace.models import (
    Activity,
    Drawer,
    Entity,
    ImportJob,
    Mention,
    Palace,
    RecollectionTrace,
    Room,
)
from palace.recall import RecallRequest, recall

# One in this many conversations states facts, one in each of the user's messages.
STATING = 20
# Those who are often named, and often spoken of; every fourth statement is about a rarer name.
_OFTEN = ("Amira", "Derek", "Tomas")
_TRADES = ("plumber", "nurse", "teacher", "baker", "lawyer", "carpenter", "pilot", "gardener")
_TOWNS = ("Leeds", "Porto", "Ghent", "Graz", "Turin", "Bergen", "Tallinn", "Cork", "Lyon", "Basel")
_FIRMS = ("Siemens", "Philips", "Barclays", "Airbus", "Renault", "Nestlé", "Bosch", "Maersk")
_KINDS = ("rye", "green", "cold", "sweet", "dark", "wild", "smoked", "fresh", "dried", "spicy")
_FOODS = ("bread", "olives", "tea", "plums", "beans", "garlic", "trout", "cheese", "figs", "soup")
_OF_OTHERS = (
    "{who} lives in {town}.",
    "{who} works as a {trade}.",
    "{who} works at {firm}.",
    "{who} is allergic to {kind} {food}.",
    "{who} hates {kind} {food}.",
)
_OF_THE_USER = ("I like {kind} {food}.", "I can't stand {kind} {food}.", "I moved to {town}.")
_WHO = ("my sister", "Derek", "our neighbour", "the plumber", "Amira", "my old teacher", "Tomas")
_DID = (
    "asked whether we could move",
    "sent me three photos of",
    "has finally finished repairing",
    "wants to borrow some money for",
    "could not stop talking about",
    "thinks we should sell",
)
_WHAT = (
    "the green canoe",
    "a second-hand piano",
    "the allotment behind the station",
    "her sourdough starter",
    "the broken greenhouse",
    "that rusty moped",
    "the holiday flat in Porto",
)
_WHEN = (
    "yesterday",
    "last Tuesday",
    "in early March",
    "two weeks ago",
    "this morning",
    "on Sunday",
)
_AND = (
    "I did not know what to say at first, but I think it was meant kindly.",
    "It rained all day, so we stayed in and looked for the papers instead.",
    "Do you remember what it cost when we asked the last time?",
    "I would rather wait until the prices have come down a little.",
    "Please keep it short when you write to them, they never read long letters.",
    "There are about forty steps up to the door, which is too much for my knee.",
)

BEGAN = datetime(2025, 1, 1, 9, tzinfo=UTC)
LONG_CONVERSATION = 1000
CONVERSATIONS, IMPORTS = 200, 60
# Conversations that are mined; the others are written after their example.
MINED = 50
# Proposals that accumulate in an unattended inbox.
PROPOSALS = 200
# One in this many drawers is in the trash, names a new person, and has a recall.
TRASHED, NAMING, RECALLING = 50, 8, 10
# Real recalls; other traces are copies.
RECALLS = 250
# Months of usage records.
MONTHS = 24
_SYLLABLES = ("ka", "lo", "mi", "ren", "ta", "vo", "shi", "dan", "el", "pu", "gar", "ny")


def stating_facts(
    transcripts: Iterable[Transcript], names: Sequence[str], *, seed: int = 1
) -> Iterator[Transcript]:
    """The same conversations, some with a statement at the end of each message of the user.

    Args:
        names: Rarer names, of which some get facts.
    """
    draw = random.Random(seed)  # noqa: S311 - made-up talk, no secret.
    for number, transcript in enumerate(transcripts):
        if number % STATING == 0:
            turns = tuple(_stating(turn, draw, names) for turn in transcript.turns)
            transcript = replace(transcript, turns=turns)
        yield transcript


def _stating(turn: Turn, draw: random.Random, names: Sequence[str]) -> Turn:
    if turn.role != "user":
        return turn
    of_others = draw.random() < 0.5
    who = draw.choice(names) if draw.random() < 0.5 else draw.choice(_OFTEN)
    statement = draw.choice(_OF_OTHERS if of_others else _OF_THE_USER).format(
        who=who,
        town=draw.choice(_TOWNS),
        trade=draw.choice(_TRADES),
        firm=draw.choice(_FIRMS),
        kind=draw.choice(_KINDS),
        food=draw.choice(_FOODS),
    )
    return replace(turn, text=f"{turn.text} {statement}")


def learn_stated(palace: Palace, stating: Iterable[Transcript], *, read_at: datetime) -> None:
    """Read the conversations that state facts; the others count as read, for they state none."""
    ids = [each.external_id for each in stating]
    rooms = Room.objects.within(palace).filter(external_id__in=ids).order_by("started_at")
    for room in tqdm(rooms, desc=f"facts of {palace.owner}", leave=False, disable=None):
        learn_room(room)
    Drawer.objects.within(palace).unread().update(facts_read_at=read_at)


def conversations(messages: int, *, seed: int = 1) -> Iterator[Transcript]:
    """Chats of 8 to 40 messages, about 30 words each, `messages` in all."""
    draw = random.Random(seed)  # noqa: S311 - made-up talk, no secret.
    start, number = datetime(2025, 1, 1, 9, tzinfo=UTC), 0
    while messages > 0:
        length = min(draw.randint(8, 40), messages)
        messages -= length
        number += 1
        start += timedelta(hours=draw.randint(2, 60))
        yield Transcript("sample", str(number), "", tuple(_turns(draw, length, start)))


def _turns(draw: random.Random, length: int, start: datetime) -> Iterator[Turn]:
    for place in range(length):
        who, did, what = (draw.choice(words) for words in (_WHO, _DID, _WHAT))
        ending = " ".join(draw.sample(_AND, k=draw.randint(1, 2)))
        text = f"{who.capitalize()} {did} {what} {draw.choice(_WHEN)}. {ending}"
        role: Role = "user" if place % 2 == 0 else "assistant"
        yield Turn(str(place), role, text, start + timedelta(minutes=place))


def furnish(palace: Palace, drawers: int) -> None:
    """Fill an empty palace deterministically."""
    names = _made_up_names(drawers // NAMING + 1)
    transcripts = list(stating_facts(conversations(drawers), names))
    # Enough for each wing, topic and name that there is.
    mine_many(palace, transcripts[:MINED])
    if others := transcripts[MINED:]:
        mine_alike(palace, others)
    # Without statistics of the new rows the server would plan each recall badly.
    tidy()
    _name_people(palace, names)
    _throw_away(palace)
    learn_stated(palace, transcripts[::STATING], read_at=BEGAN)
    traces = _recall(palace, transcripts, drawers // RECALLING)
    _chat(palace, transcripts, traces)
    _import(palace)
    _propose(palace)
    _spend(palace, drawers)
    tidy()


def questions(conversations: Sequence[Transcript]) -> Iterator[str]:
    """Endless questions: the first sentence of each conversation."""
    return cycle([f"{one.turns[0].text.partition('.')[0]}?" for one in conversations])


def _made_up_names(number: int) -> list[str]:
    """As many as are named in real conversations; the sample has only a few."""
    draw = random.Random(1)  # noqa: S311 - made-up people, no secret.
    names = {
        " ".join("".join(draw.choices(_SYLLABLES, k=3)).title() for _ in range(2))
        for _ in range(number)
    }
    return sorted(names)


def _name_people(palace: Palace, names: Sequence[str]) -> None:
    keys = Drawer.objects.within(palace).order_by("pk").values_list("pk", flat=True)
    kind = Entity.Kind.PERSON
    # Mining knows some of them, from statements.
    Entity.objects.bulk_create(
        [Entity(palace=palace, kind=kind, slug=slugify(name), name=name) for name in names],
        ignore_conflicts=True,
    )
    people = Entity.objects.filter(palace=palace, name__in=names).order_by("pk")
    Mention.objects.bulk_create(
        Mention(palace=palace, entity=person, drawer_id=key, start=0, end=8)
        for key, person in zip(keys, cycle(people), strict=False)
    )


def _throw_away(palace: Palace) -> None:
    drawers = Drawer.objects.within(palace).annotate(rest=Mod(F("pk"), TRASHED))
    drawers.filter(rest=0).update(trashed_at=BEGAN)


def _recall(palace: Palace, conversations: Sequence[Transcript], number: int) -> list[UUID]:
    """The keys of about `number` traces, newest last."""
    for question in islice(questions(conversations), min(number, RECALLS)):
        recall(palace, RecallRequest(question, recipe="default", rerank=False))
    made = list(RecollectionTrace.objects.filter(palace=palace))
    copies = [_copy(trace) for trace in islice(cycle(made), number - len(made))]
    RecollectionTrace.objects.bulk_create(copies, batch_size=200)
    return [trace.uuid for trace in chain(made, copies)]


def _copy(trace: RecollectionTrace) -> RecollectionTrace:
    return RecollectionTrace(
        palace_id=trace.palace_id,
        query=trace.query,
        recipe=trace.recipe,
        now=trace.now,
        hits=trace.hits,
        candidates=trace.candidates,
        context=trace.context,
        duration_ms=trace.duration_ms,
    )


def _chat(palace: Palace, conversations: Sequence[Transcript], traces: Sequence[UUID]) -> None:
    """Many conversations and a very long one, with a recall for each reply."""
    agent = Agent.objects.create(palace=palace, name=Agent.FIRST_NAME)
    texts = cycle([turn.text for one in conversations for turn in one.turns])
    remembered = cycle(traces) if traces else cycle([None])
    for number in range(CONVERSATIONS):
        conversation = Conversation.objects.create(
            palace=palace,
            agent=agent,
            title=f"Talk {number}",
            spoke_at=BEGAN + timedelta(days=number),
        )
        length = LONG_CONVERSATION if number == CONVERSATIONS - 1 else 10
        Message.objects.bulk_create(
            Message(
                palace=palace,
                conversation=conversation,
                position=place,
                role="assistant" if place % 2 else "user",
                text=next(texts),
                recollection=next(remembered) if place % 2 else None,
                said_at=conversation.spoke_at + timedelta(minutes=place),
                mined_at=conversation.spoke_at,
            )
            for place in range(length)
        )


def _import(palace: Palace) -> None:
    ImportJob.objects.bulk_create(
        ImportJob(
            palace=palace,
            file_name=f"conversations-{number}.json",
            file_sha256=uuid4().hex * 2,
            format="chatgpt",
            status=ImportJob.Status.DONE,
            conversations_total=200,
            conversations_done=200,
            messages_total=4000,
            messages_stored=3990,
            messages_present=4,
            messages_skipped={"empty": 6},
            finished_at=BEGAN + timedelta(days=number),
        )
        for number in range(IMPORTS)
    )


def _propose(palace: Palace) -> None:
    """Preferences, each on the words of a message."""
    drawers = Drawer.objects.within(palace).kept().exclude(text="").order_by("pk")
    findings = [
        Finding(
            kind=Kind.PREFERENCE,
            made_by="rules",
            quotes=(Quote(key, 0, len(text)),),
            after=After(f"User cares about matter {number}", "user-preferences/inferred"),
        )
        for number, (key, text) in enumerate(drawers.values_list("pk", "text")[:PROPOSALS])
    ]
    dreamt = Activity.Kind.DREAMT
    propose(
        palace, findings, Activity.objects.create(palace=palace, kind=dreamt, summary="Dreamt.")
    )


def _spend(palace: Palace, calls: int) -> None:
    purposes = cycle(Usage.Purpose.values)
    rows = (
        Usage(
            owner=palace.owner,
            purpose=next(purposes),
            provider="openrouter",
            model="some/model",
            tokens_in=900,
            tokens_out=120,
            cost_usd=Decimal("0.0012"),
            duration_ms=800,
        )
        for _ in range(calls)
    )
    first = Usage.objects.bulk_create(rows, batch_size=2000)[0].pk
    # Creation times are set automatically, so they are updated afterwards.
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE llm_usage SET created_at = %s + (id - %s) * make_interval(secs => %s)"
            " WHERE owner_id = %s AND id >= %s",
            [
                BEGAN,
                first,
                timedelta(days=30 * MONTHS).total_seconds() / calls,
                palace.owner_id,
                first,
            ],
        )
