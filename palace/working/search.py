"""Search entries by words, category and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from language.analyzer import all_readings, analyze
from language.storable import MOST_QUERY_CHARS, is_storable
from palace.errors import BadInput
from palace.models import Palace
from palace.working.entries import Entry, entries_under
from palace.working.names import begins, parts_of_category, tags_of

DEFAULT_LIMIT = 20
# The same as in recall.
K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        score: BM25 among the filtered entries; 0 without words.
    """

    entry: Entry
    score: float


def search_entries(
    palace: Palace,
    *,
    query: str = "",
    category: str = "",
    tags: Iterable[str] = (),
    prefix: str = "",
    limit: int = DEFAULT_LIMIT,
) -> list[Found]:
    """Search entries that contain any of the words, best first; without words, newest first.

    Args:
        category: This category or one below it.
        tags: Entries must have all of them.
        prefix: A path prefix, in whole parts.

    Raises:
        BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
    """
    words = _query_of(query)
    within, having = parts_of_category(category), set(tags_of(tags))
    entries = [
        entry
        for entry in entries_under(palace, prefix)
        if having <= set(entry.tags) and begins(entry.category, within)
    ]
    if not words:
        newest = sorted(entries, key=lambda entry: entry.stored_at, reverse=True)
        return [Found(entry, 0.0) for entry in newest[:limit]]
    scores = bm25(all_readings(words), [analyze(_text(entry)) for entry in entries])
    found = [Found(entry, score) for entry, score in zip(entries, scores, strict=True) if score]
    return sorted(found, key=lambda one: (-one.score, one.entry.path))[:limit]


def bm25(query: Iterable[str], texts: Sequence[Counter[str]]) -> list[float]:
    """BM25 of each text, from 0 (Robertson, Zaragoza: The Probabilistic Relevance Framework)."""
    lengths = [text.total() for text in texts]
    mean = sum(lengths) / len(texts) if texts else 0
    scores = [0.0] * len(texts)
    for term in query:
        having = sum(term in text for text in texts)
        idf = log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for at, text in enumerate(texts):
            if count := text[term]:
                slowed = count + K1 * (1 - B + B * lengths[at] / mean)
                scores[at] += idf * count * (K1 + 1) / slowed
    return scores


def _query_of(query: object) -> str:
    if not isinstance(query, str) or len(query) > MOST_QUERY_CHARS or not is_storable(query):
        raise BadInput(
            f"A query is text of up to {MOST_QUERY_CHARS} characters that can be stored."
        )
    return query.strip()


def _text(entry: Entry) -> str:
    """Split into words, also at `-`, `_` and `/`."""
    return "\n".join([entry.value, *entry.tags, entry.category, entry.path.key])
