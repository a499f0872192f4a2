"""The projects in Claude's export: a description, instructions and documents."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from language.storable import digest
from language.transcripts import Transcript
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Gatherer,
    as_id,
    as_list,
    as_mapping,
    as_time,
    derived_id,
    label,
)
from palace.transfer.importers.export_format import Format, Head, named
from palace.transfer.importers.files import Part
from palace.transfer.importers.json_stream import documents

SOURCE = "claude-projects"
# What is written about a project itself, and in which role.
_ABOUT = (("description", "user"), ("prompt_template", "system"))


def _recognises(head: Head) -> bool:
    fields = as_mapping(head.value)
    return {"uuid", "docs", "prompt_template"} <= fields.keys()


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in documents(part):
        yield _read(as_mapping(item), latest)


FORMAT = Format(
    SOURCE,
    "Claude projects",
    where="The projects.json in Claude's export, or the folder projects of newer ones. "
    "Its conversations are imported from the zip.",
    becomes="each project: its description, its instructions, and each document",
    skips="nothing",
    recognises=_recognises,
    members=named(r"projects\.json|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json"),
    conversations=conversations,
)


def _read(project: dict[str, Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    started = as_time(project.get("created_at")) or latest
    for key, role in _ABOUT:
        text = project.get(key)
        if isinstance(text, str) and text.strip():
            # A changed text is another message; the earlier one stays.
            gatherer.add(f"{key}/{digest(text)[:32]}", role, text, started)
    for document in map(as_mapping, as_list(project.get("docs"))):
        _add(gatherer, document, started)
    title = label(project.get("name"))
    name = as_id(project.get("uuid")) or derived_id(title, project.get("created_at"))
    return gatherer.conversation(Transcript(SOURCE, name, title, gatherer.take_turns()))


def _add(gatherer: Gatherer, document: dict[str, Any], started: datetime) -> None:
    text, file = document.get("content"), document.get("filename")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    said_at = as_time(document.get("created_at")) or started
    kept_with = {"filename": file} if isinstance(file, str) else None
    gatherer.add(
        as_id(document.get("uuid")) or derived_id(text), "user", text, said_at, "", kept_with
    )
