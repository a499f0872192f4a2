"""Read a window of messages without a language model: word lists, patterns, local embedder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from language.english import stem_all, stems
from language.english.stated_preferences import preference_strength
from language.english.topics.name_kinds import is_personal
from language.english.topics.names import Named, find_entities, gather
from language.english.topics.tags import tags_of_turns
from language.english.topics.titles import (
    Read,
    Shortlist,
    Stretch,
    contested,
    conversation_title,
    fallback_title,
    share_embedded,
    stretch,
    topic_titles,
)
from language.english.topics.wings import compared, find_wing, is_real_title
from language.extraction import (
    Context,
    Embed,
    EntityFound,
    Extraction,
    TopicFound,
    Vectors,
    normalised,
)
from language.transcripts import Turn, prose

# No topic is shorter than this many turns.
LEAST_TURNS = 4
# Turns (or exchanges) on each side of a gap that are compared.
_REACH = 3
# How far likeness must fall below its surroundings, on both sides together, and below what level.
_DEPTH = 0.35
_LEVEL = 0.5
# Above this likeness to the topic, or to what was said last, a window goes on with it.
_SAME_TOPIC = 0.35
# "Thanks, that helps!" is about whatever came before.
_FEW_WORDS = 4


def segments(window: Sequence[Turn], vectors: Vectors | None) -> list[tuple[int, int]]:
    """First and last turn of each stretch about one thing; they cover the window in order."""
    last = len(window) - 1
    if vectors is None or len(window) < 2 * LEAST_TURNS:
        return [(0, last)]
    starts = _exchange_starts(window)
    units = _unit_vectors(window, vectors, starts)
    cuts = sorted(starts[gap] for gap in _gaps(units, starts, len(window)))
    firsts = [0, *cuts]
    return list(zip(firsts, [*(cut - 1 for cut in cuts), last], strict=True))


def _exchange_starts(window: Sequence[Turn]) -> list[int]:
    """A question and its answer stay together; among people each turn stands for itself."""
    if all(turn.role == "user" for turn in window):
        return list(range(len(window)))
    between_people = all(turn.speaker for turn in window)
    return [
        at for at, turn in enumerate(window) if at == 0 or between_people or turn.role == "user"
    ]


def _unit_vectors(window: Sequence[Turn], vectors: Vectors, starts: list[int]) -> Vectors:
    """One unit vector an exchange; what was asked counts for more than what was answered."""
    weights = np.array([_weight(turn) for turn in window], np.float32)[:, None]
    sums = np.add.reduceat(vectors * weights, starts, axis=0)
    return normalised(sums)


def _weight(turn: Turn) -> float:
    # A word or two of assent lies anywhere in the space.
    substance = min(len(turn.text), 80) / 80
    return (0.05 + substance) * (1.0 if turn.role == "user" or turn.speaker else 0.5)


def _gaps(units: Vectors, starts: list[int], turns: int) -> list[int]:
    """Indices of the units that begin a new topic, the deepest dips first."""
    likeness = _likeness(units)
    depths = _depths(likeness)
    chosen: list[int] = []
    edges = [0, turns]
    for at in np.argsort(-depths, kind="stable"):
        gap = int(at) + 1
        if depths[at] < _DEPTH or likeness[at] > _LEVEL:
            continue
        if all(abs(starts[gap] - edge) >= LEAST_TURNS for edge in edges):
            chosen.append(gap)
            edges.append(starts[gap])
    return chosen


def _likeness(units: Vectors) -> Vectors:
    """Cosine of the stretches before and after each gap; one less than there are units."""
    sums = np.vstack([np.zeros_like(units[:1]), np.cumsum(units, axis=0)])
    gaps = np.arange(1, len(units))
    before = normalised(sums[gaps] - sums[np.maximum(gaps - _REACH, 0)])
    after = normalised(sums[np.minimum(gaps + _REACH, len(units))] - sums[gaps])
    return np.asarray((before * after).sum(axis=1), np.float32)


def _depths(likeness: Vectors) -> Vectors:
    """How far each value lies below the nearest rise on either side, added up."""
    depths = np.zeros_like(likeness)
    for at, here in enumerate(likeness):
        depths[at] = sum(_climb(side, here) - here for side in (likeness[at::-1], likeness[at:]))
    return depths


def _climb(values: Vectors, start: float) -> float:
    top = start
    for value in values:
        if value < top:
            break
        top = value
    return float(top)


@dataclass(frozen=True, slots=True)
class Draft:
    """
    Attributes:
        spans: First and last turn of each stretch about one thing.
        stretches: Each with the phrases that may be its title.
        compared: What else is compared by meaning.
        later: The drafts of the windows that follow, as far as they are at hand: the conversation
            is named after all of it.
    """

    reads: Sequence[Read]
    named: Named
    spans: Sequence[tuple[int, int]]
    stretches: Sequence[Stretch]
    compared: Sequence[str]
    later: Sequence[Draft] = ()

    @property
    def shortlists(self) -> list[Shortlist]:
        return [each.shortlist for each in self.stretches]

    @property
    def whole(self) -> list[Stretch]:
        """The stretches of this window and of those that follow."""
        return [each for one in (self, *self.later) for each in one.stretches]

    def texts(self) -> Iterator[str]:
        """What reading the window will have embedded, as far as can be told."""
        yield from self.compared
        for shortlist in self.shortlists:
            yield from contested(shortlist)


def draft(window: Sequence[Turn], vectors: Vectors | None, context: Context) -> Draft:
    """Of a window of at least one turn; of what is known only title and speakers are used."""
    reads = [_read(turn) for turn in window]
    spans = segments(window, vectors)
    names = {*context.speakers, *(turn.speaker for turn in window)}
    speakers = frozenset(part for name in names for part in name.lower().split())
    chars = share_embedded(reads, len(spans))
    stretches = [
        stretch(
            reads[first : last + 1],
            None if vectors is None else vectors[first : last + 1],
            chars,
            speakers,
        )
        for first, last in spans
    ]
    return Draft(reads, gather(reads), spans, stretches, compared(reads, context))


def _read(turn: Turn) -> Read:
    asks = turn.role == "user" or is_personal(turn.speaker)
    return Read(turn, prose(turn.text), asks)


def read_window(
    drafted: Draft, window: Sequence[Turn], vectors: Vectors | None, context: Context, embed: Embed
) -> Extraction:
    """Read a window of at least one turn.

    Without vectors topics run through, and titles and wings are found by words alone.

    Args:
        drafted: The window's draft with these vectors.
        vectors: One row a turn (unit length); None while there is no embedder.
        embed: Texts to unit vectors, for what else needs comparing by meaning.
    """
    reads = drafted.reads
    entities = find_entities(reads, drafted.named, context)
    meaning = embed if vectors is not None else None
    topics = _topics(drafted, vectors, context, embed)
    title = " ".join(context.title.split())
    wing = find_wing(reads, vectors, context, embed)
    project = wing.name if wing.kind == "project" else ""
    return Extraction(
        wing=wing,
        title=title
        if is_real_title(title)
        else conversation_title(drafted.whole, topics, project, meaning),
        topics=topics,
        entities=entities,
        tags=_tags(reads, entities),
        preferences=tuple(preference_strength(turn.text, turn.role) for turn in window),
    )


def _topics(
    drafted: Draft, vectors: Vectors | None, context: Context, embed: Embed
) -> tuple[TopicFound, ...]:
    reads, spans = drafted.reads, drafted.spans
    titles = topic_titles(drafted.stretches, embed if vectors is not None else None)
    if _continues(reads[: spans[0][1] + 1], vectors, context, embed):
        titles[0] = context.topic
    titles = _filled(titles) or [fallback_title(reads)] * len(spans)
    topics = [TopicFound(title, *span) for title, span in zip(titles, spans, strict=True)]
    return tuple(_joined(topics))


def _continues(
    reads: Sequence[Read], vectors: Vectors | None, context: Context, embed: Embed
) -> bool:
    """Whether these turns go on with the topic of the turns before the window."""
    if not context.topic or not context.before:
        return False
    asked = " ".join(read.prose for read in reads if read.asks) or reads[0].prose
    meaning = set(stem_all(re.findall(r"[^\W\d_]{3,}", asked.lower()))) - stems("function")
    if len(meaning) < _FEW_WORDS or meaning & set(stem_all(context.topic.lower().split())):
        return True
    if vectors is None:
        return False
    latest = [turn for turn in context.before if turn.role == "user" or turn.speaker]
    texts = [context.topic, *(prose(turn.text)[:300] for turn in latest[-1:])]
    middle = normalised(vectors[: len(reads)].sum(axis=0))
    return bool((embed(texts) @ middle).max() > _SAME_TOPIC)


def _filled(titles: Sequence[str]) -> list[str]:
    """A stretch without a title of its own belongs to the one before, or else after it."""
    known = [title for title in titles if title]
    filled: list[str] = []
    for title in titles if known else ():
        filled.append(title or (filled[-1] if filled else known[0]))
    return filled


def _joined(topics: Sequence[TopicFound]) -> Iterator[TopicFound]:
    """Neighbours that turned out to be about the same thing become one."""
    for _, same in groupby(topics, key=lambda topic: topic.title.casefold()):
        run = list(same)
        yield TopicFound(run[0].title, run[0].first, run[-1].last)


def tags_of(
    window: Sequence[Turn], entities: Sequence[EntityFound]
) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """AAAK tags of each turn, from these entities and its own words."""
    return _tags([_read(turn) for turn in window], entities)


def _tags(
    reads: Sequence[Read], entities: Sequence[EntityFound]
) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    return tags_of_turns(
        [read.turn for read in reads],
        [read.prose for read in reads],
        entities,
        asks=[read.asks for read in reads],
    )
