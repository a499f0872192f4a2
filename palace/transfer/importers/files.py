"""The files of an export, as streams, and what a format is: how its files are recognised and read.

A file is bare, gzipped, or a member of a zip or folder. Which format it has, the package's `detect`
finds out.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from language.errors import BadImport
from palace.transfer.importers.conversation import Conversation

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 20
# Real exports unpack to five or ten times their size. A file that unpacks to more than this is made
# to fill memory or disk; reading stops.
LARGEST_UNPACKED = 8 << 30
HIGHEST_RATIO = 200
RATIO_MATTERS_FROM = 256 << 20

# Errors of the standard library for damaged archives; the last two come from false headers.
_DAMAGE = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    struct.error,
    ValueError,
)

_WEB_PAGE = re.compile(r"my ?activity\.html", re.IGNORECASE)

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export, open for reading from its beginning.

    Attributes:
        name: The name in error messages.
        path: The file itself, where it is not packed.
    """

    name: str
    stream: io.BufferedReader
    path: Path | None = None


def exported_at(path: Path) -> datetime:
    """When the file was last written, which is after every message in it."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


@contextmanager
def opened(path: Path, name: str, progress: Progress | None = None) -> Iterator[Part | Archive]:
    """An archive, if the path is a zip or a folder; else the file, unpacked."""
    if path.is_dir():
        yield Archive(name, _folder(path))
        return
    with _translate_errors(name), path.open("rb") as raw:
        counted = io.BufferedReader(_Counted(raw, progress)) if progress else raw
        kind = raw.read(4)
        raw.seek(0)
        if kind.startswith(b"\x1f\x8b"):
            yield _part(name, gzip.GzipFile(fileobj=counted), _Most.of(path))
        elif kind.startswith(b"PK"):
            archive = zipfile.ZipFile(counted)
            infos = [info for info in archive.infolist() if not (info.is_dir() or _is_link(info))]
            zipped = {info.filename: _Zipped(archive, info) for info in infos}
            yield Archive(name, zipped, _Most.of(path))
        else:
            yield replace(_part(name, counted, None), path=path)


@dataclass(frozen=True, slots=True)
class _Zipped:
    archive: zipfile.ZipFile
    info: zipfile.ZipInfo


class Archive:
    """A zip or a folder: files by name, read without extracting them.

    Attributes:
        name: The name in error messages.
        members: Files by name, in order; without the folder that all of them are in.
    """

    def __init__(
        self, name: str, found: Mapping[str, _Zipped | Path], most: _Most | None = None
    ) -> None:
        self.name = name
        real = {each: member for each, member in sorted(found.items()) if not _is_debris(each)}
        # The folder that all are in may be hidden, such as .claude.
        self._root = _common_folder(list(real))
        short = {each.removeprefix(self._root): member for each, member in real.items()}
        self.members = {each: member for each, member in short.items() if not _is_hidden(each)}
        # For all members together, so that many small bombs are detected.
        self._most = most

    @contextmanager
    def part(self, name: str) -> Iterator[Part]:
        member, full = self.members[name], self.full_name(name)
        if isinstance(member, Path):
            with _translate_errors(full), member.open("rb") as file:
                yield replace(_part(full, file, None), path=member)
            return
        if member.info.flag_bits & 0x1:
            raise BadImport(
                f"{self.name} is locked with a password; unlock it and give the file inside."
            )
        with _translate_errors(full):
            stream = member.archive.open(member.info)
        with stream:
            yield _part(full, stream, self._most)

    def full_name(self, name: str) -> str:
        """The name as a person sees it in the archive."""
        return self._root + name

    def written_at(self, name: str) -> datetime:
        """The modification time. Zips have no time zone; UTC is assumed."""
        member = self.members[name]
        if isinstance(member, Path):
            return exported_at(member)
        try:
            return datetime(*member.info.date_time, tzinfo=UTC)
        except ValueError:
            return datetime(1980, 1, 1, tzinfo=UTC)  # The time in zips without times.


def _folder(path: Path) -> dict[str, Path]:
    """All files in the folder, recursively, without links."""
    files = (file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    return {file.relative_to(path).as_posix(): file for file in files}


def _is_link(info: zipfile.ZipInfo) -> bool:
    """Whether the member is a symbolic link."""
    return stat.S_ISLNK(info.external_attr >> 16)


def _is_debris(name: str) -> bool:
    """Whether macOS added the file to the zip."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2] == ".DS_Store"


def _is_hidden(name: str) -> bool:
    return any(step.startswith(".") for step in name.split("/"))


def _common_folder(names: list[str]) -> str:
    first, slash, _ = names[0].partition("/") if names else ("", "", "")
    return first + slash if slash and all(n.startswith(first + slash) for n in names) else ""


def nothing_inside(archive: Archive) -> str:
    """The error for an archive without files of a known format."""
    inner = next((name for name in archive.members if name.lower().endswith(".zip")), None)
    if inner:
        return (
            f"{archive.name} holds no conversations.json but another zip, "
            f"{archive.full_name(inner)}; unpack it first."
        )
    if any(_WEB_PAGE.fullmatch(name.rpartition("/")[2]) for name in archive.members):
        return (
            f"{archive.name} holds your activity as a web page, in which times are not exact; "
            "export it again and choose JSON for My Activity."
        )
    return (
        f"{archive.name} holds no conversations.json or another file that we know; give the zip "
        "as you received it."
    )


class _Most:
    """The remaining budget of unpacked bytes."""

    def __init__(self, packed_size: int) -> None:
        self.allowed = min(LARGEST_UNPACKED, max(RATIO_MATTERS_FROM, packed_size * HIGHEST_RATIO))
        self.left = self.allowed

    @classmethod
    def of(cls, path: Path) -> _Most:
        return cls(path.stat().st_size)


def _part(name: str, stream: IO[bytes] | gzip.GzipFile, most: _Most | None) -> Part:
    return Part(name, io.BufferedReader(_Unpacked(name, stream, most), CHUNK))


class _Counted(io.RawIOBase):
    """Reports how much of the file was read."""

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
        # Not the position, because a zip is read from its end first.
        self._count += len(data)
        self._progress(self._count)
        return len(data)


class _Unpacked(io.RawIOBase):
    """Unpacked bytes, limited in number; translates errors."""

    def __init__(self, name: str, stream: IO[bytes] | gzip.GzipFile, most: _Most | None) -> None:
        self._name = name
        self._stream = stream
        self._most = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        with _translate_errors(self._name):
            data = self._stream.read(len(view))
        view[: len(data)] = data
        if self._most is not None:
            self._most.left -= len(data)
            if self._most.left < 0:
                raise BadImport(
                    f"{self._name} unpacks to more than {self._most.allowed >> 20} MB, "
                    "far more than an export of its size; it was not read."
                )
        return len(data)


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise BadImport(f"{name} is damaged or was cut off; download the export again.") from error
    except RecursionError:
        raise  # An error in the file's content.
    except (NotImplementedError, RuntimeError) as error:
        raise BadImport(
            f"{name} is packed in a way we cannot read; unpack it and give the file inside."
        ) from error
    except OSError as error:
        raise BadImport(f"{name} cannot be read: {error.strerror or error}.") from error


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file, by which it is recognised.

    Attributes:
        text: The first characters.
        value: The first item of a JSON list, or the first object; None if the file is no JSON.
            Of an object that is too long, only the fields up to its first long list.
        is_listed: Whether the value is an item of a list.
    """

    text: str = ""
    value: Any = None
    is_listed: bool = False


Reader = Callable[[Part, datetime], Iterator[Conversation]]
ArchiveReader = Callable[[Archive, datetime], Iterator[Conversation]]
Members = Callable[[Collection[str]], list[str]]


def _never(_: Any) -> bool:
    return False


def _none(_: Collection[str]) -> list[str]:
    return []


def named(pattern: str) -> Members:
    """Chooses files by their own names, whatever their folders."""
    wanted = re.compile(pattern, re.IGNORECASE)
    return lambda paths: [path for path in paths if wanted.fullmatch(path.rpartition("/")[2])]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of export. By default no file is recognised.

    Attributes:
        source: The transcripts' source; a Loci export has transcripts of several sources.
        name: The display name.
        where: A sentence: where people find the file.
        becomes: What becomes a conversation, for the table in the documentation.
        skips: What is skipped or left out, for the same table.
        recognises: Whether a file that begins so has this format.
        members: Chooses the files of a zip or folder, by their paths, that may have this format.
        is_loose: Whether many other files have such names as well.
        is_archive: Whether a zip or folder has this format, by the names in it.
        conversations: Reads one file.
        of_archive: Reads a zip or folder whose files belong together.
    """

    source: str
    name: str
    where: str = ""
    becomes: str = ""
    skips: str = ""
    recognises: Callable[[Head], bool] = _never
    members: Members = _none
    is_loose: bool = False
    is_archive: Callable[[Archive], bool] = _never
    conversations: Reader | None = None
    of_archive: ArchiveReader | None = None
