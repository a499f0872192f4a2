"""Palaces written in bulk: the rows that mining writes, without the time it takes to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone
from tqdm import tqdm

from bench.scale_talk import MessageGenerator, Messages, Vectors
from language.analyzer import analyze
from language.english.preference import preference_strength
from llm.embedding import max_passage_chars
from palace.models import Closet, EmbeddingSpace, Palace, Room
from palace.storage import EmbeddedPassages, split_text, store_passages, unsorted_wing
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import model_of

BATCH = 10_000
BEGAN = datetime(2015, 1, 1, 9, tzinfo=UTC)
BETWEEN_CONVERSATIONS = timedelta(hours=3)
ROLES = ("user", "assistant")


class MadeUp(EmbeddedPassages):
    """Messages that fit one passage each, with vectors that nobody had to compute."""

    def __init__(self, space: EmbeddingSpace, texts: Sequence[str], vectors: Vectors) -> None:
        limit = max_passage_chars(model_of(space))
        self.space, self.vectors, self.note = space, vectors, ""
        self.spans = [split_text(text, limit)[:1] for text in texts]


def palace_named(name: str) -> Palace:
    """Each belongs to a person of its own."""
    owner, _ = get_user_model().objects.get_or_create(username=name)
    return Palace.objects.own(owner)


def fill(palace: Palace, space: EmbeddingSpace, generator: MessageGenerator, drawers: int) -> None:
    """Fill an empty palace; killed in between, it is left empty."""
    said: dict[int, Counter[str]] = {}
    with transaction.atomic():
        _trust_keys()
        steps = range(0, drawers, BATCH)
        for first in tqdm(steps, desc=f"{palace.owner}", unit="batch", leave=False, disable=None):
            messages = generator.messages(min(BATCH, drawers - first))
            closets = _rooms(palace, messages, first)
            keys = _keys(len(messages.texts))
            terms = dict(zip(keys, map(analyze, messages.texts), strict=True))
            _drawers(messages, closets, terms)
            embedded = MadeUp(space, messages.texts, messages.vectors)
            store_passages(palace, keys, embedded, only=terms)
            said |= terms
        # As many batches leave them once they are merged, without the room that merging leaves.
        postings.append(palace, said)


def tidy() -> None:
    """As the server does by itself, sooner or later: rows marked as seen by all, and counted."""
    for table in ("palace_passage", "palace_posting", "palace_drawer", "palace_room"):
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM (ANALYZE, FREEZE) {table}")


def _rooms(palace: Palace, messages: Messages, first: int) -> list[Closet]:
    """A room with one closet for each conversation, in the wing of what nobody has sorted."""
    wing = unsorted_wing(palace)
    # Conversations have at least 8 messages, but for the last one: numbers stay apart.
    rooms = Room.objects.bulk_create(
        Room(
            palace=palace,
            wing=wing,
            number=first + place + 1,
            source="sample",
            external_id=str(first + place),
            title=f"Talk {first + place}",
            started_at=BEGAN + (first / 24 + place) * BETWEEN_CONVERSATIONS,
            ended_at=BEGAN + (first / 24 + place + 0.5) * BETWEEN_CONVERSATIONS,
        )
        for place in range(len(messages.lengths))
    )
    return Closet.objects.bulk_create(
        Closet(palace=palace, room=room, slug="talk", title="Talk") for room in rooms
    )


def _trust_keys() -> None:
    """What is written refers to what was written just before: to look that up takes longest.

    Where the account may not say so, it is looked up.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('is_superuser')")
        if cursor.fetchone() == ("on",):
            cursor.execute("SET LOCAL session_replication_role = replica")


def _keys(number: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('palace_drawer', 'id'))"
            " FROM generate_series(1, %s)",
            [number],
        )
        return [key for (key,) in cursor.fetchall()]


def _drawers(messages: Messages, closets: Sequence[Closet], terms: dict[int, Counter[str]]) -> None:
    statement = (
        "COPY palace_drawer (id, palace_id, uuid, room_id, closet_id, number, source,"
        " conversation, external_id, position, role, speaker, text, said_at, tags, preference,"
        " terms, filed_at, mined_at) FROM STDIN"
    )
    now, said = timezone.now(), iter(zip(terms.items(), messages.texts, strict=True))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for closet, length in zip(closets, messages.lengths, strict=True):
            for place, ((key, counts), text) in enumerate(islice(said, length)):
                head = (key, *_place(closet, place), text, _said_at(closet, place), "{}")
                preference = preference_strength(text, ROLES[place % 2])
                copy.write_row((*head, preference, counts.total(), now, now))


def _place(closet: Closet, place: int) -> Iterator[object]:
    room = closet.room
    yield from (room.palace_id, uuid4(), room.pk, closet.pk, place + 1, room.source)
    yield from (room.external_id, str(place), place, ROLES[place % 2], "")


def _said_at(closet: Closet, place: int) -> datetime:
    return closet.room.started_at + timedelta(minutes=place)
