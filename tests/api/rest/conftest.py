from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from settings_app.api_keys import issue


def client_of(owner, *, scopes=("read", "write", "admin"), subject=None, **options):
    """A program with a key of its own."""
    _, text = issue(owner, "a program", scopes=scopes, subject=subject, **options)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


@pytest.fixture
def owner(db):
    return User.objects.create_user("owner")


@pytest.fixture
def stranger(db):
    return User.objects.create_user("stranger")


@pytest.fixture
def program(owner):
    return client_of(owner)


@pytest.fixture
def strangers_program(stranger):
    return client_of(stranger)
