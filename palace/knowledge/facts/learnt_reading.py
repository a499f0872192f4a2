"""What the learned reader marks in messages, where the operator has chosen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from django.conf import settings

from language.detection import ENGLISH, language_of
from language.english.facts.reading import is_by_a_person
from language.english.facts.sentences import READ_CHARS
from language.reading import Mention, Reading
from language.span_decoding import read_values, whole_words, windows
from language.transcripts import Turn
from llm.tagging import Tagged, tagger

LEARNT = "learnt"


def readings_of(turns: Sequence[Turn]) -> list[Reading]:
    """One for each message, empty where the learned reader is not in use or reads nothing.

    It has learnt from English only, and reads what people say, not what an assistant answers.

    Raises:
        EmbedderMisconfigured: the reader cannot be built.
    """
    if settings.FACT_READER != LEARNT:
        return []
    texts = [turn.text[:READ_CHARS] if _is_read(turn) else "" for turn in turns]
    places = [(at, start, end) for at, text in enumerate(texts) for start, end in windows(text)]
    tagged = tagger().tag([texts[at][start:end] for at, start, end in places]) if places else []
    parts: list[list[Reading]] = [[] for _ in turns]
    for (at, start, _end), one in zip(places, tagged, strict=True):
        parts[at].append(_reading(one, start))
    return [whole_words(_joined(part), text) for part, text in zip(parts, texts, strict=True)]


def _is_read(turn: Turn) -> bool:
    return is_by_a_person(turn) and language_of(turn.text) == ENGLISH


def _reading(tagged: Tagged, start: int) -> Reading:
    """What a window says, with places as in the message."""
    mentions, values = read_values(tagged.scores, tagged.places)
    moved = {one: _moved(one, start) for one in mentions}
    spans = tuple(
        replace(
            span,
            start=span.start + start,
            end=span.end + start,
            subject=moved[span.subject] if span.subject else None,
            score=prod(chances),
        )
        for span, chances in values
    )
    return Reading(spans, tuple(moved.values()))


def _moved(mention: Mention, start: int) -> Mention:
    return replace(mention, start=mention.start + start, end=mention.end + start)


def _joined(parts: Sequence[Reading]) -> Reading:
    return Reading(
        tuple(span for part in parts for span in part.values),
        tuple(mention for part in parts for mention in part.mentions),
    )
