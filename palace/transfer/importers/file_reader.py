"""Read a file once: spool it for filing, and list it without texts.

The web processes run it as a program of its own, so that a large file blocks no other request. It
needs no installed package, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from language.errors import BadImport
from palace.transfer import importers
from palace.transfer.importers import files
from palace.transfer.importers.conversation import Conversation, as_mapping, conversation_to_line
from palace.transfer.importers.files import Format
from palace.transfer.importers.loci import Record, read_records


@dataclass(frozen=True, slots=True)
class Places:
    """The output files.

    Attributes:
        spool: The file that a job files from.
        listed: The same conversations or records in the same form, without their texts.
    """

    spool: Path
    listed: Path


def prepare(
    path: Path,
    name: str,
    places: Places,
    *,
    may_be_whole: bool,
    progress: files.Progress | None = None,
    format_: Format | None = None,
) -> str:
    """Read the file and spool its content. Returns the source of its format.

    Args:
        may_be_whole: Whether to read a Loci export record by record, for restoring a palace.
        format_: The format of the file, if known; default: detect it.

    Raises:
        BadImport: The file is broken or of an unknown format, or the disk is full.
    """
    try:
        format_ = format_ or importers.detect(path, name)
        lines = (
            _of_records(read_records(path, name, progress))
            if may_be_whole and format_ is importers.LOCI
            else _of_conversations(importers.read(path, format_, name=name, progress=progress))
        )
        _write(places, lines)
    except RecursionError:
        raise BadImport(f"{name} is nested too deeply; nothing was imported.") from None
    return format_.source


def _of_conversations(conversations: Iterable[Conversation]) -> Iterator[tuple[bytes, bytes]]:
    for each in conversations:
        yield conversation_to_line(each), conversation_to_line(_without_texts(each))


def _without_texts(conversation: Conversation) -> Conversation:
    first, *branches = [
        replace(each, turns=tuple(replace(turn, text="", metadata=None) for turn in each.turns))
        for each in conversation.transcripts
    ]
    return replace(conversation, transcript=first, branches=tuple(branches))


def _of_records(records: Iterable[Record]) -> Iterator[tuple[bytes, bytes]]:
    for each in records:
        summary = {} if each.file != "drawers" else _ingestion_of(each)
        listed = replace(each, content=json.dumps(summary).encode())
        yield each.to_line(), listed.to_line()


def _ingestion_of(record: Record) -> dict[str, Any]:
    try:
        fields = as_mapping(record.fields())
    except ValueError as error:
        raise BadImport(
            f"Line {record.line} of the drawers in the export is not as Loci writes it: "
            f"{error}. Nothing was imported."
        ) from error
    return {key: fields.get(key) for key in ("source", "conversation", "said_at")}


def _write(places: Places, lines: Iterable[tuple[bytes, bytes]]) -> None:
    with places.spool.open("wb") as whole, places.listed.open("wb") as listed:
        for line, without_words in lines:
            _add(whole, line, places.spool.parent)
            _add(listed, without_words, places.listed.parent)


def _add(file: IO[bytes], line: bytes, folder: Path) -> None:
    """Translate a full disk to BadImport."""
    try:
        file.write(line)
    except OSError as error:
        raise BadImport(
            f"The file cannot be prepared in {folder}: {error.strerror}. "
            "Make room on that disk and try again."
        ) from error


def main() -> None:
    """Process the JSON request on standard input; respond on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    request = json.load(sys.stdin)
    # The parent may be gone by then.
    resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"]))
    os.nice(5)
    places = Places(Path(request["spool"]), Path(request["listed"]))
    path, name = Path(request["path"]), request["name"]
    try:
        answer = {"source": prepare(path, name, places, may_be_whole=request["may_be_whole"])}
    except BadImport as error:
        answer = {"refused": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
