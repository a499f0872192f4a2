"""Reading a window without a language model: word lists, patterns and the local embedder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from language.english.dates.expressions import times
from language.english.names.finding import find_entities
from language.english.preference import preference_strength
from language.english.topics.draft import Draft
from language.english.topics.prose import prose
from language.english.topics.subjects import find_wing
from language.english.topics.titles import (
    continues,
    conversation_title,
    fallback_title,
    is_real_title,
    topic_titles,
)
from language.extraction import Context, Embed, EntityFound, Extraction, TopicFound, Vectors
from language.transcripts import Turn

_LETTERS = {"person": "p", "place": "l", "event": "e", "item": "i", "project": "i"}


def read_window(
    drafted: Draft,
    window: Sequence[Turn],
    vectors: Vectors | None,
    context: Context,
    embed: Embed,
) -> Extraction:
    """Read a window of at least one turn.

    Without vectors topics run through, and titles and wings are told by words alone.

    Args:
        drafted: The window's draft with these vectors.
        vectors: One row a turn (unit length); None while there is no embedder.
        embed: Texts to unit vectors, for what else needs comparing by meaning.
    """
    reads = drafted.reads
    entities = find_entities(reads, drafted.named, context)
    topics = _topics(drafted, vectors, context, embed)
    title = " ".join(context.title.split())
    return Extraction(
        wing=find_wing(reads, vectors, context, embed),
        title=title if is_real_title(title) else conversation_title(reads, topics),
        topics=topics,
        entities=entities,
        tags=_tags([read.prose for read in reads], entities),
        preferences=tuple(preference_strength(turn.text, turn.role) for turn in window),
    )


def _topics(
    drafted: Draft, vectors: Vectors | None, context: Context, embed: Embed
) -> tuple[TopicFound, ...]:
    reads, spans = drafted.reads, drafted.spans
    titles = topic_titles(reads, spans, drafted.shortlists, vectors, embed)
    if continues(reads[: spans[0][1] + 1], vectors, context, embed):
        titles[0] = context.topic
    titles = _filled(titles) or [fallback_title(reads)] * len(spans)
    topics = [TopicFound(title, *span) for title, span in zip(titles, spans, strict=True)]
    return tuple(_joined(topics))


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
    """AAAK tags of each turn: the entities named in it, and its time expressions."""
    return _tags([prose(turn.text) for turn in window], entities)


def _tags(
    proses: Sequence[str], entities: Sequence[EntityFound]
) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    tags: list[dict[str, tuple[str, ...]]] = [{} for _ in proses]
    for entity in entities:
        letter = _LETTERS.get(entity.kind)
        if letter is None:
            continue  # There is no tag for organisations.
        for turn in sorted({span.turn for span in entity.spans}):
            tags[turn][letter] = (*tags[turn].get(letter, ()), entity.name)
    for tag, text in zip(tags, proses, strict=True):
        spoken = times(text)
        if spoken:
            tag["t"] = spoken
    return tuple(tags)
