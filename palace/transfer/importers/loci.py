"""Loci's own export (docs/export-format.md): its layout, checksums, messages and records.

A palace that is not empty gets the messages alone (`conversations`), with their original ids, and
derives everything else from them. An empty palace gets all records (`read_records`), in the order
of restoring; a record stays text until it is restored, so that long numbers do not change.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from language.errors import BadImport
from language.transcripts import Transcript, Turn
from palace.transfer.importers import files
from palace.transfer.importers.conversation import (
    Conversation,
    Gatherer,
    as_id,
    as_mapping,
    as_time,
    derived_id,
    label,
)
from palace.transfer.importers.files import CHUNK, Archive, Format
from palace.transfer.importers.json_stream import LARGEST_ITEM, line_items

FORMAT = "loci-palace"
# Readers refuse a higher version. Raise it for changed meanings, not for new fields and files.
VERSION = 1
MANIFEST = "manifest.json"
DATA = "data/"
PALACE = f"{DATA}palace.json"
# Referenced files come before those that refer to them.
FILES = (
    "wings",
    "entities",
    "rooms",
    "closets",
    "drawers",
    "facts",
    "fact_events",
    "episodes",
    "activities",
)
LARGEST_MANIFEST = 64 << 20

SOURCE = "loci"
IN_TRASH = "was in the trash there"
ROOMS, DRAWERS = f"{DATA}rooms.jsonl", f"{DATA}drawers.jsonl"
SOURCE_LENGTH = 50
Key = tuple[str, str]  # A conversation's source and its id there.


def file_of(name: str) -> str:
    """The path of one of `FILES`."""
    return f"{DATA}{name}.jsonl"


def is_loci(archive: Archive) -> bool:
    return file_of("drawers") in archive.members and MANIFEST in archive.members


def read_manifest(archive: Archive) -> Mapping[str, Any]:
    """
    Raises:
        BadImport: it is not one, or of a newer version.
    """
    with archive.part(MANIFEST) as part:
        content = part.stream.read(LARGEST_MANIFEST)
    try:
        manifest = as_mapping(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise BadImport(
            f"{archive.name} holds no readable manifest.json; export the palace again."
        ) from error
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or not isinstance(version, int):
        raise BadImport(f"{archive.name} is no Loci export: its manifest.json is another's.")
    if version > VERSION:
        raise BadImport(
            f"{archive.name} was written by a newer Loci (format {version}; this one reads up to "
            f"{VERSION}). Bring this one up to date first."
        )
    return manifest


def verify_checksum(archive: Archive, manifest: Mapping[str, Any], name: str) -> None:
    """Verify a file's checksum against the manifest.

    Raises:
        BadImport: they differ, or the file is missing.
    """
    if name not in archive.members:
        raise BadImport(f"{archive.name} holds no {name}; export the palace again.")
    digest = hashlib.sha256()
    with archive.part(name) as part:
        while data := part.stream.read(CHUNK):
            digest.update(data)
    expected = as_mapping(as_mapping(manifest.get("files")).get(name)).get("sha256")
    if digest.hexdigest() != expected:
        raise BadImport(
            f"{name} in {archive.name} is not as it was exported: its checksum differs. "
            "Export the palace again."
        )


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


EXPORT = Format(
    SOURCE,
    "Loci export",
    where="In another Loci: Settings → Data → Download your palace. Give the zip as it is.",
    becomes="each conversation; an empty palace becomes a copy of the whole",
    skips="messages in the trash",
    is_archive=is_loci,
    of_archive=conversations,
)


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
        as_id(drawer.get("agent")) or "",
    )


def _lines(archive: Archive, manifest: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The file's lines, after verifying its checksum."""
    verify_checksum(archive, manifest, name)
    with archive.part(name) as part:
        for number, line in line_items(part):
            has_words = name != DRAWERS or isinstance(as_mapping(line).get("text"), str)
            if not isinstance(line, dict) or not has_words:
                raise BadImport(
                    f"Line {number} of {name} is not as Loci writes it; nothing was imported."
                )
            yield line


@dataclass(frozen=True, slots=True)
class Record:
    """
    Attributes:
        file: One of `FILES`, or "palace".
        line: The line number, from 1.
        content: One JSON object, as text.
    """

    file: str
    line: int
    content: bytes

    def fields(self) -> dict[str, Any]:
        """
        Raises:
            ValueError: it is not a JSON object.
        """
        try:
            fields = json.loads(self.content)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not isinstance(fields, dict):
            raise ValueError("it is no object")  # noqa: TRY004 - of data, not of an argument.
        return fields

    def to_line(self) -> bytes:
        """As one line of a spool."""
        return b"\t".join((self.file.encode(), str(self.line).encode(), self.content)) + b"\n"


def record_from_line(line: bytes) -> Record:
    """Parse a line of `to_line`."""
    file, number, content = line.rstrip(b"\n").split(b"\t", 2)
    return Record(file.decode(), int(number), content)


def read_records(path: Path, name: str, progress: files.Progress | None = None) -> Iterator[Record]:
    """Yield all records, with at most one in memory.

    Raises:
        BadImport: The file is broken or was altered.
    """
    with files.opened(path, name, progress) as archive:
        if not isinstance(archive, files.Archive):
            raise BadImport(f"{name} is no Loci export: that is a zip or a folder.")
        manifest = read_manifest(archive)
        places = {"palace": PALACE, **{file: file_of(file) for file in FILES}}
        for place in places.values():
            verify_checksum(archive, manifest, place)
        for file, place in places.items():
            with archive.part(place) as part:
                yield from _records(file, part)


def _records(file: str, part: files.Part) -> Iterator[Record]:
    number = 0
    while line := part.stream.readline(LARGEST_ITEM):
        number += 1
        if len(line) >= LARGEST_ITEM:
            raise BadImport(f"Line {number} of {part.name} is longer than {LARGEST_ITEM >> 20} MB.")
        if content := line.strip():
            yield Record(file, number, content)
