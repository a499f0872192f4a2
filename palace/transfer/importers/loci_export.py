"""The messages of a Loci export (docs/export-format.md), with their original ids.

For a palace that is not empty. Everything else is derived again from the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

from language.transcripts import Transcript, Turn
from palace.errors import BadImport
from palace.transfer.importers.conversation import (
    Conversation,
    Gatherer,
    as_id,
    as_mapping,
    as_time,
    derived_id,
    label,
)
from palace.transfer.importers.files import Archive
from palace.transfer.importers.json_stream import line_items
from palace.transfer.importers.loci_archive import read_manifest, vouch
from palace.transfer.importers.loci_format import file_of

SOURCE = "loci"

IN_TRASH = "was in the trash there"
ROOMS, DRAWERS = file_of("rooms"), file_of("drawers")
SOURCE_LENGTH = 50

Key = tuple[str, str]  # A conversation's source and its id there.


def conversations(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    """Yield whole conversations, also if their messages are in several rooms.

    `latest` replaces missing times.
    """
    manifest = read_manifest(archive)
    rooms = list(_lines(archive, manifest, ROOMS))
    yet_to_come = Counter(_key(room) for room in rooms)
    titles = {_key(room): (label(room.get("title")), label(room.get("agent"))) for room in rooms}
    gathered: dict[Key, list[dict[str, Any]]] = {}
    for _, of_room in groupby(_lines(archive, manifest, DRAWERS), lambda each: each.get("room")):
        met: set[Key] = set()
        for drawer in of_room:
            gathered.setdefault(_key(drawer), []).append(drawer)
            met.add(_key(drawer))
        yet_to_come.subtract(met)
        for key in met:
            if yet_to_come[key] <= 0:
                yield _conversation(key, gathered.pop(key), titles, latest)
    for key, drawers in gathered.items():
        yield _conversation(key, drawers, titles, latest)


def _key(fields: dict[str, Any]) -> Key:
    source = label(fields.get("source"))[:SOURCE_LENGTH] or SOURCE
    return source, as_id(fields.get("conversation")) or derived_id(fields.get("conversation"))


def _conversation(
    key: Key,
    drawers: list[dict[str, Any]],
    titles: dict[Key, tuple[str, str]],
    latest: datetime,
) -> Conversation:
    gatherer = Gatherer()
    for drawer in sorted(drawers, key=_position):
        _add(gatherer, drawer, latest)
    title, agent = titles.get(key, ("", ""))
    turns: tuple[Turn, ...] = gatherer.take_turns()
    return gatherer.conversation(Transcript(*key, title, turns, agent))


def _position(drawer: dict[str, Any]) -> int:
    position = drawer.get("position")
    return position if isinstance(position, int) else 0


def _add(gatherer: Gatherer, drawer: dict[str, Any], latest: datetime) -> None:
    if drawer.get("trashed_at"):
        gatherer.skip(IN_TRASH)
        return
    gatherer.add(
        as_id(drawer.get("message")) or "~",
        drawer.get("role"),
        drawer["text"],
        as_time(drawer.get("said_at")) or latest,
        drawer.get("speaker"),
        as_mapping(drawer.get("metadata")),
    )


def _lines(archive: Archive, manifest: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The file's lines, after verifying its checksum."""
    vouch(archive, manifest, name)
    with archive.part(name) as part:
        for number, line in line_items(part):
            has_words = name != DRAWERS or isinstance(as_mapping(line).get("text"), str)
            if not isinstance(line, dict) or not has_words:
                raise BadImport(
                    f"Line {number} of {name} is not as Loci writes it; nothing was imported."
                )
            yield line
