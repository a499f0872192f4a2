"""The formats we read, and how a file is recognised: by what is in it, not by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from palace.errors import BadImport
from palace.importers import chatgpt, claude, files, plain
from palace.importers.conversation import Conversation
from palace.importers.json_stream import first_character, line_items, list_items

# How many conversations at the beginning may be without messages before we give up.
_LOOK_AT = 50


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of export.

    Attributes:
        source: The transcripts' source.
        name: What a person calls it.
    """

    source: str
    name: str
    conversations: Callable[[files.Part, datetime], Iterator[Conversation]]


CHATGPT = Format(chatgpt.SOURCE, "ChatGPT export", chatgpt.conversations)
CLAUDE = Format(claude.SOURCE, "Claude export", claude.conversations)
PLAIN = Format(plain.SOURCE, "plain JSON Lines", plain.conversations)
FORMATS = {format_.source: format_ for format_ in (CHATGPT, CLAUDE, PLAIN)}


def detect(path: Path, name: str = "") -> Format:
    """The format of the file, from its first conversations; messages call it `name`.

    Raises:
        BadImport: It is none we know, or is broken at its very beginning.
    """
    name = name or path.name
    require_file(path, name)
    for part in files.parts(path, name):
        if found := _format_of(part):
            return found
    raise BadImport(f"{name} holds no conversations.")


def read(
    path: Path, format_: Format, *, name: str = "", progress: files.Progress | None = None
) -> Iterator[Conversation]:
    """Every conversation, in the file's order, with no more than one in memory.

    `progress` is called with the bytes of the file read so far.

    Raises:
        BadImport: The file is broken; what came before has been yielded by then.
    """
    name = name or path.name
    require_file(path, name)
    latest = files.exported_at(path)
    for part in files.parts(path, name, progress):
        if first_character(part) or format_ is PLAIN:
            yield from format_.conversations(part, latest)


def require_file(path: Path, name: str) -> None:
    if path.is_dir():
        raise BadImport(f"{name} is a folder; give the conversations.json in it, or the zip.")
    if not path.is_file():
        raise BadImport(f"There is no file {path}.")


def _format_of(part: files.Part) -> Format | None:
    """None for a part without conversations, such as an empty list."""
    match first_character(part):
        case "":
            return None
        case "[":
            return _format_of_list(part)
        case "{":
            return _format_of_lines(part)
        case "<":
            raise BadImport(
                f"{part.name} is a web page; give the conversations.json that came with it."
            )
    raise BadImport(f"{part.name} is no export we know: it is not JSON. {_WHAT_WE_READ}")


def _format_of_list(part: files.Part) -> Format | None:
    item = None
    for item in islice(list_items(part), _LOOK_AT):
        if not isinstance(item, dict):
            break
        if chatgpt.MESSAGES in item:
            return CHATGPT
        if claude.MESSAGES in item:
            return CLAUDE
    if item is None:
        return None
    if isinstance(item, dict) and "messages" in item:
        raise BadImport(
            f"{part.name} is one list of conversations; in the plain format each is a line "
            "of its own, without a list around them."
        )
    raise BadImport(f"{part.name} is no export we know. {_WHAT_WE_READ}")


def _format_of_lines(part: files.Part) -> Format:
    _, line = next(line_items(part))
    if "messages" in line or not _is_single_conversation(line):
        return PLAIN
    raise BadImport(
        f"{part.name} holds a single conversation; give the whole export, which is a list of them."
    )


def _is_single_conversation(line: dict[str, Any]) -> bool:
    return chatgpt.MESSAGES in line or claude.MESSAGES in line


_WHAT_WE_READ = "Loci reads exports of ChatGPT and Claude, and JSON Lines: one conversation a line."
