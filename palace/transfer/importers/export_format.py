"""What a format is: its names, how its files are recognised, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from palace.transfer.importers.conversation import Conversation
from palace.transfer.importers.files import Archive, Part


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
