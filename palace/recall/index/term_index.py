"""Term index: a palace's statistics, and the postings of the terms asked for lately.

Both are of one revision of the palace: every write to its postings comes with one to its drawers.
An index is immutable, so that many threads may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from palace.models.packed import unpack
from palace.recall.index.corpus_stats import CorpusStats

# A term's drawers ascending, and its count and the length of each.
Posting = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.float32]]

# The most that one palace's postings take. A large palace's common terms take more, and are read
# anew for each question.
MOST_BYTES = 8 << 20
# About what a term takes besides its numbers.
TERM_BYTES = 600


@dataclass(frozen=True, slots=True)
class TermKey:
    """Identifies a term index."""

    palace_id: int


@dataclass(frozen=True, slots=True)
class TermIndex:
    """
    Attributes:
        postings: By term; None where no drawer has it.
        bytes: Approximate memory use.
    """

    corpus_stats: CorpusStats
    postings: Mapping[str, Posting | None] = field(default_factory=dict)
    bytes: int = TERM_BYTES

    def with_postings(self, postings: Mapping[str, Posting | None]) -> TermIndex:
        """The same with more postings; with none at all if these would be too many."""
        new = {term: found for term, found in postings.items() if term not in self.postings}
        taken = self.bytes + sum(map(_bytes, new.values()))
        if not new:
            return self
        if taken > MOST_BYTES:
            return TermIndex(self.corpus_stats)
        return TermIndex(self.corpus_stats, {**self.postings, **new}, taken)


def _bytes(posting: Posting | None) -> int:
    return TERM_BYTES + sum(column.nbytes for column in posting or ())


def read_postings(values: Iterator[Any]) -> dict[str, Posting]:
    """Read the postings by term from the next four values of a row: see `keyword.POSTINGS`."""
    columns = [value or () for value in islice(values, 4)]
    return {
        term: _sorted((unpack(drawers, "i8"), _floats(counts), _floats(lengths)))
        for term, drawers, counts, lengths in zip(*columns, strict=True)
    }


def _floats(data: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(data, ">i2").astype(np.float32)


def _sorted(posting: Posting) -> Posting:
    drawers, counts, lengths = posting
    if (drawers[1:] > drawers[:-1]).all():  # The usual case: postings are appended in order.
        return posting
    order = np.argsort(drawers, kind="stable")
    return drawers[order], counts[order], lengths[order]
