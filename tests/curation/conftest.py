"""A palace that was mined from our conversations."""

from __future__ import annotations

import pytest

from palace.mining.mine import mine
from tests.talk import EVERYTHING


@pytest.fixture
def lived_in(palace):
    for one in EVERYTHING:
        mine(palace, one)
    return palace
