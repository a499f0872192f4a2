"""What tests of palaces in memory compare."""

from __future__ import annotations

import numpy as np

from palace.recall.index.corpus_stats import read_stats_of
from palace.recall.index.index_loader import IndexKey, index_of, load_index
from palace.storage.indexing.spaces import active_space


def place_of(palace, space=None):
    space = space or active_space()
    return IndexKey(read_stats_of(palace).log, palace.pk, space.pk, space.dimensions)


def held(palace):
    """As a recall would have it."""
    return index_of(palace, active_space(), read_stats_of(palace))


def equals_stored(palace):
    """Whether the index in the cache says what one that is read from the tables says."""
    ours, stored = held(palace), load_index(place_of(palace))
    same_said = contents(ours) == contents(stored)
    np.testing.assert_array_equal(ours.arrays.passages, stored.arrays.passages)
    np.testing.assert_array_equal(ours.arrays.vectors, stored.arrays.vectors)
    return same_said and ours.revision == stored.revision


def contents(index):
    rows = np.arange(len(index.keys))
    names = [name for name in index.arrays.messages.dtype.names if name != "voice"]
    return [
        *(index.arrays.messages[name].tolist() for name in names),
        index.voice_roles[index.column("voice", rows)].tolist(),
        index.voice_speakers[index.column("voice", rows)].tolist(),
        *(index.before.tolist(), index.after.tolist()),
    ]
