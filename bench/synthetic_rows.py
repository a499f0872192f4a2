"""Palaces of any size, written in bulk: the rows that mining writes, without mining. Words are
Zipf-distributed, vectors clustered.

All is generated from a seed, so that a run can be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from itertools import islice, pairwise
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.utils import timezone
from tqdm import tqdm

from language.analyzer import ENGLISH, analyze, function_words
from language.english.stated_preferences import preference_strength
from llm.embedding import embed, max_passage_chars
from palace.models import Closet, EmbeddingSpace, Palace, Room
from palace.storage import EmbeddedPassages, split_text, store_passages, unsorted_wing
from palace.storage.indexing import postings
from palace.storage.indexing.spaces import model_of

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

VOCABULARY = 60_000
# Zipf's law as Mandelbrot corrected it: the n-th most frequent word is said 1/(n + SHIFT)**SLOPE
# times as often as a first one would be. The most frequent of all is in 15 % of the messages.
SLOPE, SHIFT = 1.05, 10
# The share of function words, as in any language.
EMPTY = 0.5
# Words of a message: the median, and the spread of the logarithm.
WORDS, SPREAD = 26, 0.5
FEWEST, MOST = 3, 160
# Real vectors are not evenly spread: they cluster around subjects.
SUBJECTS = 2000
# How far from its subject a message strays; the cosine with it is then about .7.
STRAYING = 1.0
# The terms of a question, in addition to everyday words.
ASKED = 6
_SYLLABLES = (
    *("ba", "ce", "dor", "fen", "gi", "hal", "jo", "kel", "lu", "mer", "na", "ost", "pi"),
    *("qua", "rin", "sto", "tev", "ul", "vam", "wex", "yor", "zin"),
)
_EMPTY = tuple(word for word in sorted(function_words(ENGLISH)) if len(word) > 1)

BATCH = 10_000
BEGAN = datetime(2015, 1, 1, 9, tzinfo=UTC)
BETWEEN_CONVERSATIONS = timedelta(hours=3)
ROLES = ("user", "assistant")
TABLES = (
    *("palace_passage", "palace_posting", "palace_drawer", "palace_room", "palace_closet"),
    *("palace_mention", "palace_entity", "palace_recollectiontrace", "palace_activity"),
    *("palace_fact", "palace_factvector", "palace_factevent", "palace_evidence"),
    *("palace_statement", "palace_proposal", "palace_proposalfact", "palace_proposalquote"),
    *("chat_message", "llm_usage"),
)


@dataclass(frozen=True, slots=True)
class Messages:
    """A run of conversations.

    Attributes:
        lengths: The number of messages of each conversation, 8 to 40.
        vectors: Unit vectors, one row a message.
    """

    lengths: list[int]
    texts: list[str]
    vectors: Vectors


@cache
def _vocabulary() -> tuple[str, ...]:
    """Words by rank, after the function words: the same for all palaces."""
    draw = np.random.default_rng(0)
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        syllables = draw.choice(_SYLLABLES, size=(VOCABULARY, 4)).tolist()
        lengths = draw.integers(2, 5, size=VOCABULARY).tolist()
        made |= {
            "".join(word[:length]): None for word, length in zip(syllables, lengths, strict=True)
        }
    return _EMPTY + tuple(islice(made, VOCABULARY))


class MessageGenerator:
    """A generator of messages; `space` must be the local model's."""

    def __init__(self, space: EmbeddingSpace, seed: int = 1, subjects: int = SUBJECTS) -> None:
        self._space, self._number = space, subjects
        self._draw = np.random.default_rng(seed)

    @cached_property
    def _shares(self) -> npt.NDArray[np.float64]:
        """The cumulative frequency of words by rank."""
        frequencies = 1 / (np.arange(VOCABULARY) + 1 + SHIFT) ** SLOPE
        shares = np.full(len(_EMPTY), EMPTY / len(_EMPTY))
        telling = frequencies * ((1 - EMPTY) / frequencies.sum())
        return np.asarray(np.cumsum(np.concatenate([shares, telling])))

    @cached_property
    def _subjects(self) -> tuple[list[str], Vectors]:
        """Messages around which others cluster, with their real vectors."""
        texts = self._texts(self._number)
        return texts, embed(texts, model_of(self._space))

    def _texts(self, number: int) -> list[str]:
        sizes = np.exp(self._draw.normal(np.log(WORDS), SPREAD, number))
        lengths = np.clip(sizes, FEWEST, MOST).astype(int)
        ranks = np.searchsorted(self._shares, self._draw.random(lengths.sum()) * self._shares[-1])
        words = _vocabulary()
        said = [words[rank] for rank in ranks]
        ends = np.cumsum([0, *lengths]).tolist()
        return [f"{' '.join(said[start:end]).capitalize()}." for start, end in pairwise(ends)]

    def messages(self, number: int) -> Messages:
        lengths: list[int] = []
        while sum(lengths) < number:
            lengths.append(min(int(self._draw.integers(8, 41)), number - sum(lengths)))
        around = self._subjects[1][self._draw.integers(0, self._number, number)]
        noise = self._draw.standard_normal(around.shape, dtype=np.float32)
        vectors = around + noise * (STRAYING / around.shape[1] ** 0.5)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return Messages(lengths, self._texts(number), vectors)

    def questions(self) -> Iterator[str]:
        """Endless questions: some words of a message with many similar ones."""
        while True:
            words = self._draw.choice(self._subjects[0]).rstrip(".").lower().split()
            telling = [word for word in dict.fromkeys(words) if word not in function_words(ENGLISH)]
            asked = self._draw.permutation(telling)[:ASKED]
            if len(asked) == ASKED:
                yield f"What did we say about {' '.join(asked)}?"


class MadeUp(EmbeddedPassages):
    """Messages of one passage each, with vectors that need no embedder."""

    def __init__(self, space: EmbeddingSpace, texts: Sequence[str], vectors: Vectors) -> None:
        limit = max_passage_chars(model_of(space))
        self.space, self.vectors, self.note = space, vectors, ""
        self.spans = [split_text(text, limit)[:1] for text in texts]


def palace_named(name: str) -> Palace:
    """The palace of the person with this name, created if it is missing."""
    owner, _ = get_user_model().objects.get_or_create(username=name)
    return Palace.objects.own(owner)


def fill(palace: Palace, space: EmbeddingSpace, generator: MessageGenerator, drawers: int) -> None:
    """Fill an empty palace, in one transaction."""
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
        # Postings as after merging many batches, without the free space that merging leaves.
        postings.append(palace, said)
        _count_drawers(palace)


def tidy() -> None:
    """Vacuum and analyze, as the server does by itself later."""
    for table in TABLES:
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM (ANALYZE, FREEZE) {table}")


def _rooms(palace: Palace, messages: Messages, first: int) -> list[Closet]:
    """For each conversation a room with one closet, in the unsorted wing."""
    wing = unsorted_wing(palace)
    # Conversations have at least 8 messages, except the last one, so numbers stay unique.
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
    """Skip the checks of foreign keys, which take longest: all keys were written just before.

    If the account lacks the right, they are checked.
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


def _count_drawers(palace: Palace) -> None:
    """Store the counts that triggers keep, if triggers are off."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE palace_room SET stored_count = found.number, stored_bytes = found.bytes,"
            " kept_count = found.number, kept_bytes = found.bytes"
            " FROM (SELECT room_id, count(*) AS number, sum(octet_length(text)) AS bytes"
            " FROM palace_drawer WHERE palace_id = %s GROUP BY room_id) found"
            " WHERE palace_room.palace_id = %s AND palace_room.id = found.room_id",
            [palace.pk, palace.pk],
        )


def _place(closet: Closet, place: int) -> Iterator[object]:
    room = closet.room
    yield from (room.palace_id, uuid4(), room.pk, closet.pk, place + 1, room.source)
    yield from (room.external_id, str(place), place, ROLES[place % 2], "")


def _said_at(closet: Closet, place: int) -> datetime:
    return closet.room.started_at + timedelta(minutes=place)
