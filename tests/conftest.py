"""Alice owns a palace; Bob is a stranger to it."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from palace.models import Palace


@pytest.fixture
def alice(db):
    return get_user_model().objects.create_user("alice", "alice@example.org", "alice-password")


@pytest.fixture
def bob(db):
    return get_user_model().objects.create_user("bob", "bob@example.org", "bob-password")


@pytest.fixture
def palace(alice):
    return Palace.objects.own(alice)
