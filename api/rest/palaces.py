"""Resolve the palace of a request from key and `user_id`."""

from __future__ import annotations

from api.rest.problems import Problem
from language.storable import storable_id
from palace.models import Palace, PalaceQuerySet
from settings_app.api_keys import ApiKey


def subject_for(key: ApiKey, user_id: str | None) -> str:
    """The name its owner gives the palace; empty is the owner's own.

    Args:
        user_id: As the request has it; without one it is the key's own palace.

    Raises:
        Problem: 400, it is blank; 403, the key is for another palace, whether or not there is
            such a one.
    """
    if user_id is None:
        return key.subject or ""
    if not user_id.strip():
        raise Problem(400, "bad_input", "user_id is blank; leave it out for your own palace.")
    subject = storable_id(user_id)
    if not key.opens(subject):
        said = "This key opens one palace only, and not that one. Leave user_id out."
        raise Problem(403, "wrong_palace", said)
    return subject


def palace_of(key: ApiKey, user_id: str | None) -> Palace | None:
    """The existing palace, or None if that person has none yet."""
    return Palace.objects.filter(owner=key.owner_id, subject=subject_for(key, user_id)).first()


def palace_made(key: ApiKey, user_id: str | None) -> Palace:
    subject = subject_for(key, user_id)
    palace, _ = Palace.objects.get_or_create(owner_id=key.owner_id, subject=subject)
    return palace


def palaces_for(key: ApiKey) -> PalaceQuerySet:
    """All palaces of the key."""
    palaces = Palace.objects.filter(owner=key.owner_id).order_by("pk")
    return palaces if key.subject is None else palaces.filter(subject=key.subject)


def palaces_of(key: ApiKey) -> list[Palace]:
    """As `palaces_for`, read."""
    return list(palaces_for(key))
