from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from settings_app.api_keys import issue


def mem0_of(owner, **options):
    """mem0's client with a key of ours."""
    _, text = issue(owner, "mem0", **{"scopes": ("read", "write", "admin"), **options})
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {text}")
    return client


@pytest.fixture
def owner(db):
    return User.objects.create_user("owner", email="owner@example.org")


@pytest.fixture
def mem0(owner):
    return mem0_of(owner)
