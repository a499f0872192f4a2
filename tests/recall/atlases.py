"""What tests of palaces in memory compare."""

from __future__ import annotations

import numpy as np

from palace.recall.index.corpus_stats import read_stats_of
from palace.recall.index.index_cache import atlas_of
from palace.recall.index.index_loader import Place, survey
from palace.storage.indexing.spaces import active_space


def place_of(palace, space=None):
    space = space or active_space()
    return Place(read_stats_of(palace).log, palace.pk, space.pk, space.dimensions)


def held(palace):
    """As a recall would have it."""
    return atlas_of(palace, active_space(), read_stats_of(palace))


def is_as_read_anew(palace):
    """Whether the atlas on the shelf says what one that is read from the tables says."""
    ours, anew = held(palace), survey(place_of(palace))
    same_said = contents(ours) == contents(anew)
    np.testing.assert_array_equal(ours.survey.passages, anew.survey.passages)
    np.testing.assert_array_equal(ours.survey.vectors, anew.survey.vectors)
    return same_said and ours.revision == anew.revision


def contents(atlas):
    rows = np.arange(len(atlas.keys))
    names = [name for name in atlas.survey.messages.dtype.names if name != "voice"]
    return [
        *(atlas.survey.messages[name].tolist() for name in names),
        *(atlas.roles(rows).tolist(), atlas.speakers(rows).tolist()),
        *(atlas.before.tolist(), atlas.after.tolist()),
    ]
