"""A zip that is handed on while it is written: of its members none is ever whole in memory."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from django.utils import timezone

# Bytes that are handed on together.
CHUNK = 1 << 16


class Archive:
    """
    Attributes:
        members: Of each, by name, its SHA-256 and how many bytes and lines it has.
    """

    def __init__(self) -> None:
        self.members: dict[str, dict[str, Any]] = {}
        self._pipe = _Pipe()
        self._zip = zipfile.ZipFile(self._pipe, "w", zipfile.ZIP_DEFLATED)
        self._now = timezone.now().timetuple()[:6]

    def add(self, name: str, lines: Iterable[str]) -> Iterator[bytes]:
        """Write a member, line by line, and yield what the zip has grown by meanwhile."""
        info = zipfile.ZipInfo(name, self._now)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o600 << 16
        digest, size, count = hashlib.sha256(), 0, 0
        # How large it becomes is not known when its header is written.
        with self._zip.open(info, "w", force_zip64=True) as member:
            for line in lines:
                data = line.encode() + b"\n"
                member.write(data)
                digest.update(data)
                size, count = size + len(data), count + 1
                yield from self._pipe.taken(CHUNK)
        self.members[name] = {"bytes": size, "lines": count, "sha256": digest.hexdigest()}
        yield from self._pipe.taken(CHUNK)

    def close(self) -> Iterator[bytes]:
        self._zip.close()
        yield from self._pipe.taken(1)


class _Pipe:
    """What `ZipFile` writes to; it cannot go back in it."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def taken(self, least: int) -> Iterator[bytes]:
        """What was written since, once it is at least so many bytes."""
        if len(self._written) >= least:
            data = bytes(self._written)
            self._written.clear()
            yield data


def as_line(record: object) -> str:
    return json.dumps(record, ensure_ascii=False)
