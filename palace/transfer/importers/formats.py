"""The supported formats, and how a file's format is detected: by content, not by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from palace.errors import BadImport
from palace.transfer.importers import chatgpt, claude, files, gemini, loci, markdown, plain, slack
from palace.transfer.importers.conversation import Conversation
from palace.transfer.importers.json_stream import first_character, is_text, line_items, list_items
from palace.transfer.importers.loci import is_loci

# The most leading conversations without messages before detection gives up.
_LOOK_AT = 50


Reader = Callable[[files.Part, datetime], Iterator[Conversation]]
ArchiveReader = Callable[[files.Archive, datetime], Iterator[Conversation]]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of export.

    Attributes:
        source: The transcripts' source; a Loci export has transcripts of several sources.
        name: The display name.
        conversations: Reads one file.
        of_archive: Reads a zip or folder whose files belong together.
    """

    source: str
    name: str
    conversations: Reader | None = None
    of_archive: ArchiveReader | None = None


CHATGPT = Format(chatgpt.SOURCE, "ChatGPT export", chatgpt.conversations)
CLAUDE = Format(claude.SOURCE, "Claude export", claude.conversations)
GEMINI = Format(gemini.SOURCE, "Gemini activity", gemini.conversations)
SLACK = Format(slack.SOURCE, "Slack export", of_archive=slack.conversations)
MARKDOWN = Format(
    markdown.SOURCE, "Markdown", markdown.conversations_of_file, markdown.conversations
)
LOCI = Format(loci.SOURCE, "Loci export", of_archive=loci.conversations)
PLAIN = Format(plain.SOURCE, "plain JSON Lines", plain.conversations)
# The same lines; a source of its own lets one step take all of it out again. Never detected.
SAMPLE = Format("sample", "sample palace", partial(plain.conversations, source="sample"))
FORMATS = {each.source: each for each in (CHATGPT, CLAUDE, GEMINI, SLACK, MARKDOWN, LOCI, PLAIN)}


def detect(path: Path, name: str = "") -> Format:
    """The format of the file, from its first conversations; messages call it `name`.

    Raises:
        BadImport: The format is unknown, or the file is broken at its beginning.
    """
    name = name or path.name
    require_file(path, name)
    with files.opened(path, name) as found:
        if isinstance(found, files.Archive) and (format_ := _format_of_archive(found)):
            return format_
    for part in files.parts(path, name):
        if format_ := _format_of(part):
            return format_
    raise BadImport(f"{name} holds no conversations.")


def _format_of_archive(archive: files.Archive) -> Format | None:
    """The archive's format; None if each file has its own."""
    if is_loci(archive):
        return LOCI
    if slack.is_slack(archive):
        return SLACK
    is_read_file_by_file = any(map(files.holds_conversations, archive.members))
    if not is_read_file_by_file and any(map(markdown.is_markdown, archive.members)):
        return MARKDOWN
    return None


def read(
    path: Path, format_: Format, *, name: str = "", progress: files.Progress | None = None
) -> Iterator[Conversation]:
    """Yield the conversations in order, with at most one in memory.

    `progress` is called with the bytes of the file read so far.

    Raises:
        BadImport: The file is broken; earlier conversations were yielded.
    """
    name = name or path.name
    require_file(path, name)
    latest = files.exported_at(path)
    with files.opened(path, name, progress) as found:
        if isinstance(found, files.Archive) and format_.of_archive:
            yield from format_.of_archive(found, latest)
        elif isinstance(found, files.Archive):
            for part in files.members(found):
                yield from _read_part(part, format_, latest)
        else:
            yield from _read_part(found, format_, latest)


def _read_part(part: files.Part, format_: Format, latest: datetime) -> Iterator[Conversation]:
    if format_.conversations and (first_character(part) or format_ in (PLAIN, MARKDOWN)):
        yield from format_.conversations(part, latest)


def require_file(path: Path, name: str) -> None:
    if path.is_dir() and not any(path.iterdir()):
        raise BadImport(f"{name} is an empty folder; give the zip, or what was in it.")
    if not path.is_dir() and not path.is_file():
        raise BadImport(f"There is no file {path}.")


def _format_of(part: files.Part) -> Format | None:
    """None for a part without conversations, such as an empty list."""
    if markdown.is_markdown(part.name):
        return MARKDOWN  # Plain text has no other signature.
    match first_character(part):
        case "":
            return None
        case "[":
            return _format_of_list(part)
        case "{":
            return _format_of_lines(part)
        case "<":
            raise BadImport(
                f"{part.name} is a web page; give the conversations.json that came with it. "
                "Of Gemini, export My Activity again and choose JSON."
            )
    what = "not JSON" if is_text(part) else "not text, but a picture or another binary file"
    raise BadImport(f"{part.name} is no export we know: it is {what}. {_WHAT_WE_READ}")


def _format_of_list(part: files.Part) -> Format | None:
    item = None
    for item in islice(list_items(part), _LOOK_AT):
        if not isinstance(item, dict):
            break
        if chatgpt.MESSAGES in item:
            return CHATGPT
        if claude.MESSAGES in item:
            return CLAUDE
        if gemini.is_activity(item) and gemini.is_of_gemini(item):
            return GEMINI
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


_WHAT_WE_READ = (
    "Loci reads exports of ChatGPT, Claude, Gemini, Slack and Loci, Markdown, and JSON Lines: one "
    "conversation a line."
)
