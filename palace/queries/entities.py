"""Entities by name. The owner of a palace is stored as User, and is You on pages."""

from __future__ import annotations

from django.db.models import Q

from language.facts import USER
from palace.models import Entity

YOU = "You"


def display_name(entity: Entity) -> str:
    """The name for readers: the owner of the palace reads You."""
    is_owner = entity.kind == Entity.Kind.PERSON and entity.name == USER
    return YOU if is_owner else entity.name


def stored_name(text: str) -> str:
    """A name that a reader types, as facts store it."""
    return USER if text.casefold() == YOU.casefold() else text


def named_like(words: str) -> Q:
    """Each word is part of the name or of another name."""
    found = Q()
    for word in map(stored_name, words.split()):
        found &= Q(name__icontains=word) | Q(aliases__icontains=word)
    return found
