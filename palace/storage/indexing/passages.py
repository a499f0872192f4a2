"""Passages: drawers split into spans and embedded, in the space of one model."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Container, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from django.conf import settings

from language.analyzer import UNSPACED
from llm import sent
from llm.embedding import embed, max_passage_chars
from llm.errors import LLMError
from palace.models import Drawer, EmbeddingSpace, Palace
from palace.storage.bulk_insert import insert_packed, packed_numbers, packed_rows
from palace.storage.indexing.spaces import model_of

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

# Where a long text may be split, best first: a blank line, a line, a sentence, a clause, a word.
_CUTS = [
    re.compile(cut) for cut in (r"\n\s*\n", r"\n", r"[.!?。！？][\"')\]]*\s+", r"[,;:]\s+", r"\s")
]
_JOINER = "\u200d"
# The vowels and final consonants of decomposed Hangul, and the skin tones of emoji.
_JOINED = re.compile("[\u1160-\u11ff\U0001f3fb-\U0001f3ff]")
_FLAG, _FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]"), re.compile("[\U0001f1e6-\U0001f1ff]+\\Z")
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
    return _between_characters(text, earliest, start + max_chars)


def _between_characters(text: str, earliest: int, end: int) -> int:
    """The last place up to `end` between what a reader sees as characters; `end` if there is none.

    A letter and its marks, or an emoji of several code points, is one character.
    """
    at = end
    while at > earliest and _continues(text, at):
        at -= 1
    return at if at > earliest else end


def _continues(text: str, at: int) -> bool:
    """Whether the code point at `at` belongs to the character before it."""
    if _JOINER in (text[at], text[at - 1]) or _JOINED.match(text, at):
        return True
    if unicodedata.category(text[at]).startswith("M"):
        return True
    # Flags are pairs of letters of their own.
    flags = _FLAGS.search(text, max(at - 200, 0), at) if _FLAG.match(text, at) else None
    return flags is not None and len(flags[0]) % 2 == 1


def embed_passages(texts: Sequence[str], palace: Palace, space: EmbeddingSpace) -> Vectors:
    """One vector per part of a message; equal ones are embedded once.

    The cache keeps only vectors that may have been paid for, in case they must be computed again
    after a crash: for a local model it would store every message's vector twice.

    Raises:
        LLMError: the embedder is unavailable or misconfigured.
    """
    model = model_of(space)
    cached = settings.EMBEDDING_CACHES_MESSAGES or not model.is_local
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = embed(list(rows), model, owner_id=palace.owner_id, cached=cached)
    return vectors[[rows[text] for text in texts]]


class EmbeddedPassages:
    """The passages of some drawers, embedded in one call.

    Attributes:
        spans: The spans of each drawer.
        vectors: One row per span, all drawers in order; None if the embedder was unavailable.
        note: Why there are no vectors; empty if there are.
    """

    def __init__(self, palace: Palace, space: EmbeddingSpace, drawers: Sequence[Drawer]) -> None:
        model = model_of(space)
        texts = [drawer.text for drawer in drawers]
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
            with sent.made_of(sent.references("drawer", [drawer.pk for drawer in drawers])):
                self.vectors = embed_passages(passage_texts, palace, space)
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
    drawers, ordinals, starts, ends = columns
    insert_packed(
        _INSERT.format(given="%b::halfvec[]" if vectors is not None else "%s::halfvec[]"),
        [
            *(palace.pk, embedded.space.pk, packed_numbers(drawers, "i8")),
            *(packed_numbers(ordinals, "i2"), packed_numbers(starts, "i4")),
            *(packed_numbers(ends, "i4"), None if vectors is None else _packed(vectors)),
        ],
    )


def _rows_of_passages(
    drawer_ids: Sequence[int], embedded: EmbeddedPassages
) -> Iterator[tuple[int, int, int, int]]:
    for drawer_id, spans in zip(drawer_ids, embedded.spans, strict=True):
        for ordinal, (start, end) in enumerate(spans):
            yield drawer_id, ordinal, start, end


# Without vectors their array is null, and so is each of its elements.
_INSERT = """
INSERT INTO palace_passage (palace_id, space_id, drawer_id, ordinal, start, "end", embedding)
SELECT %s, %s, drawer, ordinal, first, past, vector FROM unnest(
    %b::bigint[], %b::smallint[], %b::int[], %b::int[], {given}
) AS new (drawer, ordinal, first, past, vector)
"""


def _packed(vectors: Vectors) -> object:
    """Vectors in the server's binary format, built as one array.

    As text a vector is three times as long, and parsed number by number. A halfvec is its
    dimensions, two unused bytes, then its numbers
    (https://github.com/pgvector/pgvector, halfvec_recv).
    """
    size = vectors.shape[1]
    fields = [("length", ">i4"), ("dimensions", ">i2"), ("nothing", ">i2"), ("vector", ">f2", size)]
    rows = np.zeros(len(vectors), np.dtype(fields))
    rows["length"] = 4 + 2 * size
    rows["dimensions"] = size
    rows["vector"] = vectors
    return packed_rows(rows)
