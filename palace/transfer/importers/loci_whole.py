"""All records of a Loci export, in the order of restoring.

A record stays text until it is restored, so that long numbers do not change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palace.errors import BadImport
from palace.transfer.importers import files
from palace.transfer.importers.json_stream import LARGEST_ITEM
from palace.transfer.importers.loci_archive import read_manifest, vouch
from palace.transfer.importers.loci_format import FILES, PALACE, file_of


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


def from_line(line: bytes) -> Record:
    """Parse a line of `to_line`."""
    file, number, content = line.rstrip(b"\n").split(b"\t", 2)
    return Record(file.decode(), int(number), content)


def read(path: Path, name: str, progress: files.Progress | None = None) -> Iterator[Record]:
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
            vouch(archive, manifest, place)
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
