"""A palace with a past, and an empty index cache."""

from __future__ import annotations

import pytest

from palace.pipeline import mine
from palace.recall.index.index_loader import INDEX_CACHE
from tests.conversations import EVERYTHING, long_transcript
from tests.furnished_palaces import furnish


@pytest.fixture
def empty_index_cache():
    INDEX_CACHE.clear()
    yield
    INDEX_CACHE.clear()


@pytest.fixture
def lived_in(palace):
    def live(palace):
        mine(palace, long_transcript(30))
        for one in EVERYTHING:
            mine(palace, one)

    return furnish(palace, "long and everything", live)
