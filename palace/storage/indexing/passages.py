"""Passages: drawers split into spans and embedded, in the space of one model."""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection

from language.analyzer import UNSPACED
from llm.embedding import embed, max_passage_chars
from llm.errors import LLMError
from palace.models import EmbeddingSpace, Palace
from palace.storage.indexing.spaces import model_of

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

# Where a long text may be split, best first: a blank line, a line, a sentence, a clause, a word.
_CUTS = [
    re.compile(cut) for cut in (r"\n\s*\n", r"\n", r"[.!?。！？][\"')\]]*\s+", r"[,;:]\s+", r"\s")
]
# An approximation for ordinary prose.
CHARS_A_TOKEN = 4
# An ordinal is a smallint. The rest of a longer message is found by keywords only.
MAX_PASSAGES = 32_000
# A split in the first half of the allowed length would make a needlessly short passage.
_MIN_FILL = 0.5


def split_text(text: str, max_chars: int) -> list[tuple[int, int]]:
    """Offsets of the spans of `text`, in order, each at most `max_chars` long and not blank.

    In scripts without spaces a character is about a token, so spans are shorter.
    """
    if 2 * len(UNSPACED.sub("", text)) < len(text):
        max_chars //= CHARS_A_TOKEN
    spans: list[tuple[int, int]] = []
    start = 0
    while start < len(text) and len(spans) < MAX_PASSAGES:
        end = _cut(text, start, max_chars)
        if text[start:end].strip():
            spans.append((start, end))
        start = end
    return spans


def _cut(text: str, start: int, max_chars: int) -> int:
    if len(text) - start <= max_chars:
        return len(text)
    earliest = start + int(max_chars * _MIN_FILL)
    for pattern in _CUTS:
        cuts = [match.end() for match in pattern.finditer(text, earliest, start + max_chars)]
        if cuts:
            return cuts[-1]
    return start + max_chars


class EmbeddedPassages:
    """The passages of some drawers, embedded in one call.

    Attributes:
        spans: The spans of each drawer.
        vectors: One row per span, all drawers in order; None if the embedder was unavailable.
        note: Why there are no vectors; empty if there are.
    """

    def __init__(self, palace: Palace, space: EmbeddingSpace, texts: Sequence[str]) -> None:
        model = model_of(space)
        self.space = space
        self.spans = [split_text(text, max_passage_chars(model)) for text in texts]
        passage_texts = [
            text[start:end]
            for text, spans in zip(texts, self.spans, strict=True)
            for start, end in spans
        ]
        self.vectors: Vectors | None = None
        self.note = ""
        try:
            self.vectors = embed(passage_texts, model, owner_id=palace.owner_id)
        except LLMError as error:
            self.note = f"Not embedded yet; a background task will retry: {error}"
            logger.warning(self.note)

    def per_drawer(self) -> Iterator[Vectors | None]:
        """The vectors of each drawer's spans, in the drawers' order."""
        first = 0
        for spans in self.spans:
            yield None if self.vectors is None else self.vectors[first : first + len(spans)]
            first += len(spans)

    def centroids(self) -> Vectors | None:
        """One unit vector per drawer, the mean of its spans; None without an embedder."""
        if self.vectors is None:
            return None
        means = np.zeros((len(self.spans), self.space.dimensions), dtype=np.float32)
        for row, vectors in enumerate(self.per_drawer()):
            if vectors is not None and len(vectors):
                means[row] = vectors.mean(axis=0)
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        return np.asarray(means / np.maximum(norms, 1e-12), dtype=np.float32)


def store_passages(
    palace: Palace, drawer_ids: Sequence[int], embedded: EmbeddedPassages, *, only: Container[int]
) -> None:
    """Write the passages of the drawers in `only`, which must have none in this space.

    Call it in a transaction that locks the drawers.
    """
    wanted = [
        (row, drawer_id, ordinal, start, end)
        for row, (drawer_id, ordinal, start, end) in enumerate(
            _rows_of_passages(drawer_ids, embedded)
        )
        if drawer_id in only
    ]
    if not wanted:
        return
    places, *columns = zip(*wanted, strict=True)
    vectors = None if embedded.vectors is None else embedded.vectors[list(places)]
    statement = (
        'COPY palace_passage (palace_id, space_id, drawer_id, ordinal, start, "end", embedding)'
        " FROM STDIN (FORMAT BINARY)"
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(_binary(len(wanted), [palace.pk, embedded.space.pk, *columns], vectors))


def _rows_of_passages(
    drawer_ids: Sequence[int], embedded: EmbeddedPassages
) -> Iterator[tuple[int, int, int, int]]:
    for drawer_id, spans in zip(drawer_ids, embedded.spans, strict=True):
        for ordinal, (start, end) in enumerate(spans):
            yield drawer_id, ordinal, start, end


# Types of the columns before the vector, in the server's binary format.
_COLUMNS = (">i8", ">i8", ">i8", ">i2", ">i4", ">i4")
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"


def _binary(count: int, columns: Sequence[int | Sequence[int]], vectors: Vectors | None) -> bytes:
    """Passage rows in the binary format of COPY, built as one array.

    As text a vector is three times as long, and parsed number by number. Each field is a length,
    -1 for null, and that many bytes; a halfvec is its dimensions, two unused bytes, then its
    numbers (https://github.com/pgvector/pgvector, halfvec_recv).
    """
    fields: list[tuple[Any, ...]] = [("fields", ">i2")]
    for number, kind in enumerate(_COLUMNS):
        fields += [(f"length{number}", ">i4"), (f"column{number}", kind)]
    fields.append(("length", ">i4"))
    if vectors is not None:
        fields += [("dimensions", ">i2"), ("nothing", ">i2"), ("vector", ">f2", vectors.shape[1])]
    rows = np.zeros(count, np.dtype(fields))
    rows["fields"] = len(_COLUMNS) + 1
    for number, (kind, values) in enumerate(zip(_COLUMNS, columns, strict=True)):
        rows[f"length{number}"] = np.dtype(kind).itemsize
        rows[f"column{number}"] = values
    rows["length"] = -1
    if vectors is not None:
        rows["length"] = 4 + 2 * vectors.shape[1]
        rows["dimensions"] = vectors.shape[1]
        rows["vector"] = vectors
    return _SIGNATURE + rows.tobytes() + _END
