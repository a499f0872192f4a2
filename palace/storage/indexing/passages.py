"""Passages: drawers cut into stretches and embedded, in the space of one model."""

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

# Where a long text may be cut, best first: a blank line, a line, a sentence, a clause, a word.
_CUTS = [
    re.compile(cut) for cut in (r"\n\s*\n", r"\n", r"[.!?。！？][\"')\]]*\s+", r"[,;:]\s+", r"\s")
]
# Of ordinary prose, about.
CHARS_A_TOKEN = 4
# More than any message has; an ordinal is a smallint. The rest of a longer one is found by words.
MAX_PASSAGES = 32_000
# A cut in the first part of the allowed length would leave a needlessly short passage.
_MIN_FILL = 0.5


def split(text: str, max_chars: int) -> list[tuple[int, int]]:
    """Offsets of the stretches of `text`, in order, each at most `max_chars` long and not blank.

    Where words are not spaced a character is about a token, and stretches are that much shorter.
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


class Embedded:
    """The passages of some drawers, embedded in one call.

    Attributes:
        spans: For each drawer its stretches.
        vectors: One row a stretch, all drawers in order; None when the embedder was down.
        note: Why there are no vectors; empty when there are.
    """

    def __init__(self, palace: Palace, space: EmbeddingSpace, texts: Sequence[str]) -> None:
        model = model_of(space)
        self.space = space
        self.spans = [split(text, max_passage_chars(model)) for text in texts]
        stretches = [
            text[start:end]
            for text, spans in zip(texts, self.spans, strict=True)
            for start, end in spans
        ]
        self.vectors: Vectors | None = None
        self.note = ""
        try:
            self.vectors = embed(stretches, model, owner_id=palace.owner_id)
        except LLMError as error:
            self.note = f"Not embedded yet, to be done later: {error}"
            logger.warning(self.note)

    def per_drawer(self) -> Iterator[Vectors | None]:
        """The vectors of each drawer's stretches, in the drawers' order."""
        first = 0
        for spans in self.spans:
            yield None if self.vectors is None else self.vectors[first : first + len(spans)]
            first += len(spans)

    def centroids(self) -> Vectors | None:
        """One unit vector a drawer: the mean of its stretches; None when the embedder was down."""
        if self.vectors is None:
            return None
        means = np.zeros((len(self.spans), self.space.dimensions), dtype=np.float32)
        for row, vectors in enumerate(self.per_drawer()):
            if vectors is not None and len(vectors):
                means[row] = vectors.mean(axis=0)
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        return np.asarray(means / np.maximum(norms, 1e-12), dtype=np.float32)


def store(
    palace: Palace, drawer_ids: Sequence[int], embedded: Embedded, *, only: Container[int]
) -> None:
    """Write the passages of those drawers in `only`, which have none yet in this space.

    Call it in a transaction that holds the drawers.
    """
    wanted = [
        (row, drawer_id, ordinal, start, end)
        for row, (drawer_id, ordinal, start, end) in enumerate(_stretches(drawer_ids, embedded))
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


def _stretches(
    drawer_ids: Sequence[int], embedded: Embedded
) -> Iterator[tuple[int, int, int, int]]:
    for drawer_id, spans in zip(drawer_ids, embedded.spans, strict=True):
        for ordinal, (start, end) in enumerate(spans):
            yield drawer_id, ordinal, start, end


# Of the columns before the vector: as the server's binary format has them.
_COLUMNS = (">i8", ">i8", ">i8", ">i2", ">i4", ">i4")
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"


def _binary(count: int, columns: Sequence[int | Sequence[int]], vectors: Vectors | None) -> bytes:
    """Rows of passages in the binary format of COPY, all made at once.

    Written as text a vector is three times as long, and read number by number. Each field is a
    length, -1 for a null, and that many bytes; those of a halfvec are its dimensions and two
    bytes of nothing, then its numbers (https://github.com/pgvector/pgvector, halfvec_recv).
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
