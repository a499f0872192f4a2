"""The owner: whom a house of one person signs in."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User


def find_owner() -> User | None:
    """The first active superuser; where there is none, the first active user."""
    people = get_user_model().objects.filter(is_active=True)
    return people.order_by("-is_superuser", "pk").first()
