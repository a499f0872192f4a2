"""A palace with a few rows that are committed, so that other programs see them."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from palace.models import Palace
from palace.pipeline import mine
from tests.config.conftest import House
from tests.conversations import LISBON


@pytest.fixture
def palace(transactional_db):
    owner = get_user_model().objects.create_superuser("alice")
    palace = Palace.objects.own(owner)
    mine(palace, LISBON)
    return palace


@pytest.fixture
def new_house_beside(tmp_path):
    """Another home, which nobody has used."""
    built = House(tmp_path / "elsewhere")
    yield built
    built.tear_down()
