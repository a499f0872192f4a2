"""A palace with a past, and an empty index cache."""

from __future__ import annotations

import pytest

from palace.recall.index.index_loader import INDEX_CACHE
from tests.conversations import EVERYTHING, long_transcript
from tests.furnished_palaces import furnish_with


@pytest.fixture
def empty_index_cache():
    INDEX_CACHE.clear()
    yield
    INDEX_CACHE.clear()


@pytest.fixture
def lived_in(palace):
    return furnish_with(palace, long_transcript(30), *EVERYTHING)
