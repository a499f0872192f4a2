"""Cursor's agent transcripts: `~/.cursor/projects/PROJECT/agent-transcripts/CHAT/CHAT.jsonl`.

A message a line, without an id or a time: its line is its id, as lines are only added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from palace.transfer.importers.agent_session import (
    RECORD,
    SKIPPED,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    Session,
)
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    as_list,
    as_mapping,
    derived_id,
)
from palace.transfer.importers.export_format import Format, Head, named
from palace.transfer.importers.files import Part
from palace.transfer.importers.json_stream import lines_of_a_log

SOURCE = "cursor-transcript"
# Tuples, as what is looked up in them may be anything.
_ROLES = ("user", "assistant")
_CHAT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHELLS = ("Shell", "run_terminal_cmd", "run_terminal_command_v2")
_LEFT_OUT = {
    "thinking": THINKING,
    "tool_use": TOOL_CALL,
    "tool_result": TOOL_RESULT,
    "image": "image",
}
# Cursor puts what was typed between these, and the time and its own notes before.
_BEGIN, _END = "<user_query>\n", "\n</user_query>"


def _recognises(head: Head) -> bool:
    record = as_mapping(head.value)
    content = as_mapping(record.get("message")).get("content")
    is_message = record.keys() == {"role", "message"} and isinstance(content, list)
    return not head.is_listed and is_message and record["role"] in _ROLES


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """Messages have no times: all have the file's."""
    path = PurePosixPath(part.name)
    session = Session(SOURCE, "Cursor", latest)
    session.external_id = path.stem if _CHAT.fullmatch(path.stem) else derived_id(path.stem)
    session.is_sub_agents = "subagents" in path.parts
    for number, record in enumerate(lines_of_a_log(part, session.gatherer)):
        _read_record(session, str(number), record)
    yield session.conversation()


FORMAT = Format(
    SOURCE,
    "Cursor transcript",
    where="The folder ~/.cursor/projects, a zip of it, or one of the .jsonl files in it. The "
    "database has the same chats with their times.",
    becomes="each session",
    skips=SKIPPED,
    recognises=_recognises,
    members=named(r".+\.jsonl"),
    conversations=conversations,
)


def _read_record(session: Session, name: str, record: dict[str, Any]) -> None:
    role, content = record.get("role"), as_mapping(record.get("message")).get("content")
    if role is None and "type" in record:
        session.gatherer.leave_out(RECORD)
    elif role not in _ROLES or not isinstance(content, list):
        session.gatherer.skip(UNKNOWN_FORM)
    else:
        for place, block in enumerate(map(as_mapping, as_list(content))):
            _read_block(session, f"{name}/{place}" if place else name, str(role), block)


def _read_block(session: Session, name: str, role: str, block: dict[str, Any]) -> None:
    kind, text = block.get("type"), block.get("text")
    command = as_mapping(block.get("input")).get("command")
    if kind == "text" and isinstance(text, str):
        session.say(name, role, _typed(text) if role == "user" else text)
    elif kind == "tool_use" and block.get("name") in _SHELLS and isinstance(command, str):
        session.say(name, "tool", command)
    else:
        session.gatherer.leave_out(_LEFT_OUT.get(str(kind), "block of another kind"))


def _typed(text: str) -> str:
    _, mark, rest = text.partition(_BEGIN)
    typed, end, _ = rest.rpartition(_END)
    return typed if mark and end else text
