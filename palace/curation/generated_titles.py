"""Titles that mining took from words which are gone."""

from __future__ import annotations

from collections.abc import Sequence

from language.analyzer import analyze
from language.slugs import slug_of
from palace.models import Closet, Drawer, Room
from palace.storage.filing.file import UNTITLED
from palace.storage.indexing import postings

UNTITLED_TOPIC = "Untitled topic"
# Of a slug made anew, so that a number fits behind it.
SLUG_STEM = 160


def forget_names(room: Room, purged: Sequence[str]) -> bool:
    """Take words that only the purged texts had out of the titles of the room and its closets.

    Returns whether the room's own title had such a word.

    Args:
        purged: The texts; their drawers and postings are deleted already.
    """
    said: set[str] = set().union(*(analyze(text).keys() for text in purged))
    closets = list(Closet.objects.filter(palace=room.palace_id, room=room).order_by("pk"))
    titles = [room.title, *(closet.title for closet in closets)]
    telling = {term for title in titles for term in analyze(title) if term in said}
    lost = telling - _still_said(room, telling)
    for closet in closets:
        if lost & analyze(closet.title).keys():
            closet.title = _without(lost, closet.title) or UNTITLED_TOPIC
            # A number of its own keeps it apart from a closet of that name.
            closet.slug = f"{slug_of(closet.title)[:SLUG_STEM]}-{closet.pk}"
            closet.save(update_fields=["title", "slug"])
    if not lost & analyze(room.title).keys():
        return False
    room.title = _without(lost, room.title) or UNTITLED
    room.save(update_fields=["title"])
    return True


def _still_said(room: Room, terms: set[str]) -> set[str]:
    """Those of the terms that a mined drawer left in the room has."""
    left = Drawer.objects.filter(palace=room.palace_id, room=room)
    return postings.said_in(room.palace, terms, left.values_list("pk", flat=True))


def _without(lost: set[str], title: str) -> str:
    """The title without those words, nor what then stands at its ends and says nothing."""
    words = [(word, analyze(word).keys()) for word in title.split()]
    left = [(word, terms) for word, terms in words if not lost & terms]
    while left and not left[0][1]:
        left.pop(0)
    while left and not left[-1][1]:
        left.pop()
    joined = " ".join(word for word, _ in left)
    return joined[:1].upper() + joined[1:]
