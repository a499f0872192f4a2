"""The palace index: one palace in memory, looked up in arrays. No database.

An index never changes, so that many may read it at once: what was written since is in the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from language.english.message_traits import TELLS_NOTHING, Trait
from palace.recall.raw_sql import Keys, among, distinct

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
Rows = npt.NDArray[np.int64]
# What stands before the first message of a conversation, and after its last: all is 0.
NO_MESSAGE = np.zeros(1, MESSAGE)


class Stretches:
    """Which passages are whose.

    Attributes:
        ordinals: Of each passage; passages are by drawer, then by ordinal.
        starts: The place of each drawer's first passage.
        counts: How many passages each drawer has.
        drawers: Keys of all that have any, ascending.
    """

    def __init__(self, passages: Keys) -> None:
        """
        Args:
            passages: `drawer << 16 | ordinal`, ascending.
        """
        owners = passages >> 16
        is_first = np.r_[True, owners[1:] != owners[:-1]][: len(owners)]
        self.ordinals = (passages & 0xFFFF).astype(np.int16)
        self.starts: Rows = np.flatnonzero(is_first)
        self.counts: Rows = np.diff(np.r_[self.starts, len(owners)])
        self.drawers: Keys = owners[self.starts]


class PalaceIndex:
    """
    Attributes:
        arrays: Of all kept drawers of the palace.
        keys: Of the drawers, ascending: the place of one here is its row.
        said_at: Of each row, in seconds since the epoch.
        silent: Keys of the drawers that tell nothing, ascending.
        before: Of each row that of the message before it in its conversation, -1 at the start;
            likewise `after`.
    """

    def __init__(self, arrays: IndexArrays, beside: tuple[Rows, Rows] | None = None) -> None:
        """
        Args:
            beside: `before` and `after`, where they are known.
        """
        self.arrays = arrays
        self.keys: Keys = arrays.messages["key"].copy()
        self.said_at: npt.NDArray[np.float64] = arrays.messages["said_at"].copy()
        self.silent: Keys = self.keys[_tells_nothing(arrays.messages["traits"])]
        self.stretches = Stretches(arrays.passages)
        self.before, self.after = beside or _beside(arrays.messages)
        self._messages = np.concatenate([arrays.messages, NO_MESSAGE])
        parted = [voice.partition(":") for voice in arrays.voices]
        self._roles = np.array([role for role, _, _ in parted], dtype=str)
        self._speakers = np.array([speaker for _, _, speaker in parted], dtype=str)
        for array in (self.keys, self.said_at, self._messages, arrays.messages, arrays.vectors):
            array.flags.writeable = False

    @property
    def revision(self) -> int:
        return self.arrays.revision

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        own = (self.keys, self.said_at, self.before, self.after, self._messages)
        of_stretches = 4 * self.stretches.drawers.nbytes
        return self.arrays.bytes + sum(array.nbytes for array in own) + of_stretches

    def with_changes(self, drawers: Keys, left: IndexArrays) -> PalaceIndex:
        """The next one.

        Args:
            drawers: Keys of all that were written to, ascending.
            left: What there is of them now.
        """
        arrays = self.arrays.without(drawers).joined(left)
        return PalaceIndex(arrays, self._beside_anew(drawers, left.messages, arrays.messages))

    def _beside_anew(self, gone: Keys, come: Messages, messages: Messages) -> tuple[Rows, Rows]:
        """What `_beside` says of these messages, looking only where something was written.

        Args:
            gone: Keys of those of ours that are left out, ascending.
            come: Those that are not ours.
        """
        leave = among(self.keys, gone)
        rows = np.full(len(self.keys) + 1, -1, dtype=np.int64)  # The last is that of no message.
        stayed = np.searchsorted(messages["key"], self.keys[~leave])
        rows[:-1][~leave] = stayed
        before, after = np.full((2, len(messages)), -1, dtype=np.int64)
        before[stayed], after[stayed] = rows[self.before[~leave]], rows[self.after[~leave]]
        left_in = self._messages[:-1]["conversation"][leave]
        touched = distinct(left_in, come["conversation"])
        written = np.flatnonzero(among(messages["conversation"], touched))
        own = np.append(written, -1)
        before_written, after_written = _beside(messages[written])
        before[written], after[written] = own[before_written], own[after_written]
        return before, after

    def rows_of(self, drawers: Keys) -> Rows:
        """Of those of the drawers that are here, in their order."""
        if not len(self.keys):
            return np.empty(0, np.int64)
        rows: Rows = np.minimum(np.searchsorted(self.keys, drawers), len(self.keys) - 1)
        return np.asarray(rows[self.keys[rows] == drawers])

    def said_within(self, start: float, end: float) -> Keys:
        """Drawers said from the first moment on and before the second, both in epoch seconds."""
        return self.keys[(self.said_at >= start) & (self.said_at < end)]

    def messages(self, rows: Rows) -> Messages:
        """At these rows; `NO_MESSAGE` for -1."""
        return self._messages[rows]

    def roles(self, rows: Rows) -> npt.NDArray[np.str_]:
        return np.asarray(self._roles[self.arrays.messages["voice"][rows]])

    def speakers(self, rows: Rows) -> npt.NDArray[np.str_]:
        return np.asarray(self._speakers[self.arrays.messages["voice"][rows]])


def _tells_nothing(traits: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """A question within a talk stands for what was said about it."""
    return np.asarray(((traits & TELLS_NOTHING) > 0) & ((traits & Trait.TAKES_UP) == 0))


def _beside(messages: Messages) -> tuple[Rows, Rows]:
    order = np.lexsort((messages["position"], messages["conversation"]))
    conversations = messages["conversation"][order]
    follows = conversations[1:] == conversations[:-1]
    before, after = np.full((2, len(messages)), -1, dtype=np.int64)
    before[order[1:][follows]] = order[:-1][follows]
    after[order[:-1][follows]] = order[1:][follows]
    return before, after


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
