"""Plain text: each file is one verbatim note."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from language.storable import digest
from language.transcripts import Transcript
from palace.transfer.importers.conversation import Conversation, Gatherer, as_id, label
from palace.transfer.importers.files import Archive, Format, Part, named
from palace.transfer.importers.markdown import read_text

SOURCE = "text"


def conversations_of_file(part: Part, latest: datetime) -> Iterator[Conversation]:
    yield _note(part, part.name, latest)


def conversations(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    for name in _members(archive.members):
        with archive.part(name) as part:
            yield _note(part, name, archive.written_at(name))


_members = named(r".+\.(txt|text)")
FORMAT = Format(
    SOURCE,
    "plain text",
    where="A .txt file, or a zip of a folder of them: each is one note.",
    becomes="each file, as one note",
    skips="files that are not UTF-8",
    members=_members,
    is_loose=True,
    conversations=conversations_of_file,
    of_archive=conversations,
)


def is_plain_text(name: str) -> bool:
    return bool(_members([name]))


def _note(part: Part, name: str, written_at: datetime) -> Conversation:
    gatherer = Gatherer()
    text = read_text(part, gatherer)
    if text is not None:
        # A changed note is a new message; the earlier text stays.
        gatherer.add(f"~{digest(text)[:32]}", "user", text, written_at)
    title = label(PurePosixPath(name).stem)
    return gatherer.conversation(Transcript(SOURCE, as_id(name), title, gatherer.take_turns()))
