from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    """Hashing well takes a quarter of a second a user, which no test here is about."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
