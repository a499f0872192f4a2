"""Index arrays: what recall needs to know of drawers and of their passages, as arrays. No database.

It holds no texts, and nothing that is in the trash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from palace.recall.raw_sql import Keys, among

Vectors = npt.NDArray[np.float32]
# The signs of a vector's numbers, most significant bit first, 64 to a word; filled up with zeros.
BinaryCodes = npt.NDArray[np.uint64]
Messages = npt.NDArray[np.void]

MESSAGE = np.dtype(
    [
        ("key", "i8"),
        ("room", "i8"),
        ("conversation", "i8"),  # A hash of its source and its id there.
        ("position", "i4"),
        ("said_at", "f8"),  # Seconds since the epoch.
        ("preference", "f4"),
        ("terms", "i4"),
        ("traits", "i2"),
        ("voice", "i4"),  # The place of its role and speaker among the voices.
    ]
)
NO_VECTORS: Vectors = np.empty((0, 0), np.float32)
NO_CODES: BinaryCodes = np.empty((0, 0), np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class IndexArrays:
    """Of some drawers, or of all that a palace holds.

    Attributes:
        revision: The last change that is in it; what is older than the first of all is 0.
        messages: As `MESSAGE`, by ascending key.
        voices: `role:speaker` of all that speak.
        passages: `drawer << 16 | ordinal` of each that has a vector, ascending.
        vectors: One row a passage; of a large palace none.
        codes: The vectors' signs instead, of a large palace only.
    """

    revision: int
    messages: Messages
    voices: tuple[str, ...]
    passages: Keys
    vectors: Vectors
    codes: BinaryCodes

    @property
    def bytes(self) -> int:
        kept = (self.messages, self.passages, self.vectors, self.codes)
        return sum(array.nbytes for array in kept)

    def without(self, drawers: Keys) -> IndexArrays:
        """
        Args:
            drawers: Keys, ascending.
        """
        gone = among(self.messages["key"], drawers)
        if not gone.any():  # The vectors are many: they are copied only where they must be.
            return self
        stay = ~among(self.passages >> 16, drawers)
        return replace(
            self,
            messages=self.messages[~gone],
            passages=self.passages[stay],
            vectors=self.vectors[stay[: len(self.vectors)]],
            codes=self.codes[stay[: len(self.codes)]],
        )

    def joined(self, later: IndexArrays) -> IndexArrays:
        """Both in one, as of the later one's revision; they have no drawer in common."""
        others = later.messages.copy()
        others["voice"] += len(self.voices)
        messages = np.concatenate([self.messages, others])
        if (messages["key"][1:] < messages["key"][:-1]).any():  # What is new comes last mostly.
            messages = messages[np.argsort(messages["key"], kind="stable")]
        messages["voice"], voices = _distinct(messages["voice"], self.voices + later.voices)
        passages = np.concatenate([self.passages, later.passages])
        vectors = np.concatenate([self.vectors, later.vectors])
        codes = np.concatenate([self.codes, later.codes])
        if (passages[1:] < passages[:-1]).any():
            order = np.argsort(passages, kind="stable")
            passages = passages[order]
            vectors, codes = vectors[order[: len(vectors)]], codes[order[: len(codes)]]
        return IndexArrays(later.revision, messages, voices, passages, vectors, codes)


def _distinct(
    places: npt.NDArray[np.int32], voices: tuple[str, ...]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Each voice that is heard once: whoever has been purged leaves no name behind."""
    heard: dict[str, int] = {}
    anew = np.zeros(len(voices), dtype=np.int32)
    for place in np.flatnonzero(np.bincount(places)).tolist():
        anew[place] = heard.setdefault(voices[place], len(heard))
    return anew[places], tuple(heard)


def binary_codes(vectors: npt.NDArray[np.float16]) -> BinaryCodes:
    """Of each row; a zero counts as negative, as it does to the database."""
    return packed(np.packbits(vectors > 0, axis=1))


def packed(codes: npt.NDArray[np.uint8]) -> BinaryCodes:
    """From eight to a byte."""
    missing = -codes.shape[1] % 8
    whole = np.pad(codes, ((0, 0), (0, missing))) if missing else codes
    return np.ascontiguousarray(whole).view(np.uint64)
