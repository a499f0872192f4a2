"""The pages of an export that a person reads: one a room, in Markdown, with every word of it."""

from __future__ import annotations

from collections.abc import Iterator

from language.slugs import slug_of
from palace.models import Drawer, Palace, Room
from palace.models.hierarchy import DrawerQuerySet
from palace.transfer.export.records import CHUNK, LONG_CHUNK

# Of the title, in a file's name.
NAME_LENGTH = 60
READ_ME = """\
# A Loci palace

Everything that Loci remembers, as it was on the day of this export.

- `rooms/`: the conversations, one page each, to read. What is in the trash is not among them.
- `data/`: the same and all that was made of it, for programs: JSON, one object a line.
- `manifest.json`: the format's version, how much there is of everything, and a checksum of each
  file.

Loci takes it back, **Memory → Import** or `manage.py import_chats`: an empty palace becomes what
this one was, and into any other come the messages, word for word. No key and no password is in it.
It is not encrypted: keep it as you would keep a diary.
"""


def pages(palace: Palace) -> Iterator[tuple[str, Iterator[str]]]:
    """(file name, lines) of each room that has something to read."""
    rooms = Room.objects.within(palace).select_related("wing").order_by("number")
    for room in rooms.iterator(CHUNK):
        drawers = Drawer.objects.within(palace).kept().filter(room=room)
        if drawers.exists():
            yield _name(room), _lines(room, drawers.with_place().order_by("position", "pk"))


def _name(room: Room) -> str:
    return f"rooms/R-{room.number:04}-{slug_of(room.title)[:NAME_LENGTH].strip('-')}.md"


def _lines(room: Room, drawers: DrawerQuerySet) -> Iterator[str]:
    yield f"# {room.title}"
    yield ""
    yield f"{room.wing.name} · {_days(room)} · {room.source}"
    for drawer in drawers.iterator(LONG_CHUNK):
        yield ""
        yield f"## {drawer.speaker or drawer.role} · {drawer.said_at:%Y-%m-%d %H:%M} UTC"
        yield f"`{drawer.pointer}`"
        yield ""
        yield drawer.text


def _days(room: Room) -> str:
    first, last = f"{room.started_at:%Y-%m-%d}", f"{room.ended_at:%Y-%m-%d}"
    return first if first == last else f"{first} to {last}"
