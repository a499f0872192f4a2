"""A palace with a few rows that are committed, so that other programs see them."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from palace.models import Palace
from tests.config.conftest import House
from tests.conversations import LISBON
from tests.furnished_palaces import furnish_with


@pytest.fixture
def palace(transactional_db):
    owner = get_user_model().objects.create_superuser("alice")
    return furnish_with(Palace.objects.own(owner), LISBON)


@pytest.fixture
def new_house_beside(tmp_path):
    """Another home, which nobody has used."""
    built = House(tmp_path / "elsewhere")
    yield built
    built.tear_down()
