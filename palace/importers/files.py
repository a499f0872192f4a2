"""The bytes of an export: a bare file, gzipped, or members of a zip; read as streams."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from palace.errors import BadImport

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 20
# Real exports unpack to five or ten times their size. More than this is a file made to fill memory
# or disk, and reading it is stopped.
LARGEST_UNPACKED = 8 << 30
HIGHEST_RATIO = 200
RATIO_MATTERS_FROM = 256 << 20

# What a damaged archive makes the standard library raise; the last two come from lying headers.
_DAMAGE = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    struct.error,
    ValueError,
)

_CONVERSATIONS = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
_LINES = re.compile(r"(?:^|/)[^/]+\.jsonl$")

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export, open for reading from its beginning.

    Attributes:
        name: What messages to people call it.
    """

    name: str
    stream: io.BufferedReader


def exported_at(path: Path) -> datetime:
    """When the file was last written: nothing in it was said later."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def parts(path: Path, name: str, progress: Progress | None = None) -> Iterator[Part]:
    """The files of the export that hold conversations, one open at a time, in order of name.

    `name` is what messages call the file: an upload's path is not its name. `progress` is called
    with the bytes of the file at `path` that have been read so far.
    """
    with _told(name), path.open("rb") as raw:
        counted = io.BufferedReader(_Counted(raw, progress)) if progress else raw
        kind = raw.read(4)
        raw.seek(0)
        if kind.startswith(b"\x1f\x8b"):
            yield _part(name, gzip.GzipFile(fileobj=counted), path.stat().st_size)
        elif kind.startswith(b"PK"):
            yield from _members(name, zipfile.ZipFile(counted))
        else:
            yield _part(name, counted, None)


def _members(file_name: str, archive: zipfile.ZipFile) -> Iterator[Part]:
    infos = [i for i in archive.infolist() if not i.is_dir() and "__MACOSX/" not in i.filename]
    wanted = [i for i in infos if _CONVERSATIONS.search(i.filename)]
    wanted = wanted or [i for i in infos if _LINES.search(i.filename)]
    if not wanted:
        raise BadImport(_nothing_inside(file_name, [i.filename for i in infos]))
    for info in sorted(wanted, key=lambda info: info.filename):
        if info.flag_bits & 0x1:
            raise BadImport(
                f"{file_name} is locked with a password; unlock it and give the file inside."
            )
        with archive.open(info) as member:
            yield _part(info.filename, member, info.compress_size)


def _nothing_inside(file_name: str, names: list[str]) -> str:
    inner = next((name for name in names if name.lower().endswith(".zip")), None)
    if inner:
        return f"{file_name} holds no conversations.json but another zip, {inner}; unpack it first."
    return (
        f"{file_name} holds no conversations.json; "
        "give the zip as you received it from ChatGPT or Claude."
    )


def _part(name: str, stream: IO[bytes] | gzip.GzipFile, packed_size: int | None) -> Part:
    return Part(name, io.BufferedReader(_Unpacked(name, stream, packed_size), CHUNK))


class _Counted(io.RawIOBase):
    """Tells how much of the file has been read."""

    def __init__(self, raw: IO[bytes], progress: Progress) -> None:
        self._raw = raw
        self._progress = progress
        self._count = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        data = self._raw.read(len(memoryview(buffer)))
        memoryview(buffer)[: len(data)] = data
        # Not the position: a zip is read from its end first.
        self._count += len(data)
        self._progress(self._count)
        return len(data)


class _Unpacked(io.RawIOBase):
    """Unpacked bytes, of which there are never absurdly many; trouble becomes a sentence."""

    def __init__(
        self, name: str, stream: IO[bytes] | gzip.GzipFile, packed_size: int | None
    ) -> None:
        self._name = name
        self._stream = stream
        self._most = LARGEST_UNPACKED
        if packed_size is not None:
            self._most = min(self._most, max(RATIO_MATTERS_FROM, packed_size * HIGHEST_RATIO))
        self._is_packed = packed_size is not None
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        with _told(self._name):
            data = self._stream.read(len(view))
        view[: len(data)] = data
        self._count += len(data)
        if self._is_packed and self._count > self._most:
            raise BadImport(
                f"{self._name} unpacks to more than {self._most >> 20} MB, "
                "far more than an export of its size; it was not read."
            )
        return len(data)


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise BadImport(f"{name} is damaged or was cut off; download the export again.") from error
    except (NotImplementedError, RuntimeError) as error:
        raise BadImport(
            f"{name} is packed in a way we cannot read; unpack it and give the file inside."
        ) from error
    except OSError as error:
        raise BadImport(f"{name} cannot be read: {error.strerror or error}.") from error
