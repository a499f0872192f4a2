"""A palace that was mined from our conversations, and drawers of it by their words."""

from __future__ import annotations

import pytest

from palace.models import Drawer, RecollectionTrace
from palace.recall.recall import recall
from palace.recall.request import RecallRequest


@pytest.fixture
def asked(lived_in):
    """Asks, and gives the trace."""

    def ask(question, **options):
        found = recall(lived_in, RecallRequest(question, **options))
        return RecollectionTrace.objects.get(uuid=found.uuid)

    return ask


@pytest.fixture
def drawer_of(lived_in):
    return lambda words: Drawer.objects.within(lived_in).get(text__contains=words)
