"""Cursor: its "Export chat", and the transcripts of its agent.

An exported chat is Markdown; above each message are a rule and `**User**` or `**Cursor**`. A
transcript is `~/.cursor/projects/PROJECT/agent-transcripts/CHAT/CHAT.jsonl`: a message a line,
without an id or a time. Its line is its id, as lines are only added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from language.transcripts import Role, Transcript
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
    Gatherer,
    as_list,
    as_mapping,
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import lines_of_a_log
from palace.transfer.importers.markdown import read_text, without_margin

SOURCE = "cursor"
_HEAD = re.compile(r"# [^\n]*\n_Exported on [^\n]{1,80} from Cursor \([^\n)]{1,40}\)_\r?\n")
_MARKS: dict[str, Role] = {"**User**": "user", "**Cursor**": "assistant"}
_RULE = "---"


def _recognises(head: Head) -> bool:
    return bool(_HEAD.match(head.text))


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """The export has one time, in the form of its country: `latest` is used instead."""
    gatherer = Gatherer()
    text = read_text(part, gatherer)
    messages = _messages(text or "")
    title = (text or "").partition("\n")[0].strip().removeprefix("# ")
    if text is not None and not messages:
        gatherer.skip(UNKNOWN_FORM)
    seen: Counter[str] = Counter()
    for role, words in messages:
        # A chat may be taken up again further back: ids are of words, and of how often they came.
        key = derived_id(role, words)
        seen[key] += 1
        gatherer.add(f"{key}~{seen[key]}", role, words, latest)
    # A later export of the same chat begins in the same way.
    name = derived_id(title, messages[0][1] if messages else part.name)
    yield gatherer.conversation(
        Transcript(SOURCE, name, label(title), gatherer.take_turns(), "Cursor")
    )


FORMAT = Format(
    SOURCE,
    "Cursor chat",
    where="In Cursor, in the menu of a chat: Export chat. Give the cursor_….md, or a zip or folder "
    "of several.",
    becomes="each file",
    skips="files that are not UTF-8",
    recognises=_recognises,
    members=named(r"cursor_.+\.md"),
    conversations=conversations,
)


def _messages(text: str) -> list[tuple[Role, str]]:
    found: list[tuple[Role, list[str]]] = []
    lines: list[str] = []
    for line in text.split("\n"):
        role = _MARKS.get(line.strip())
        if role and _ends_with_rule(lines):
            lines = []
            found.append((role, lines))
        else:
            lines.append(line)
    said = [(role, "\n".join(without_margin(lines)).rstrip("\r")) for role, lines in found]
    return [(role, words) for role, words in said if words]


def _ends_with_rule(lines: list[str]) -> bool:
    """Whether a rule is last, which is then removed; blank lines around it go as well."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if not end or lines[end - 1].strip() != _RULE:
        return False
    del lines[end - 1 :]
    return True


TRANSCRIPT = "cursor-transcript"
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


def _recognises_transcript(head: Head) -> bool:
    record = as_mapping(head.value)
    content = as_mapping(record.get("message")).get("content")
    is_message = record.keys() == {"role", "message"} and isinstance(content, list)
    return not head.is_listed and is_message and record["role"] in _ROLES


def transcripts(part: Part, latest: datetime) -> Iterator[Conversation]:
    """Messages have no times: all have the file's."""
    path = PurePosixPath(part.name)
    session = Session(TRANSCRIPT, "Cursor", latest)
    session.external_id = path.stem if _CHAT.fullmatch(path.stem) else derived_id(path.stem)
    session.is_sub_agents = "subagents" in path.parts
    for number, record in enumerate(lines_of_a_log(part, session.gatherer)):
        _read_record(session, str(number), record)
    yield session.conversation()


TRANSCRIPT_FORMAT = Format(
    TRANSCRIPT,
    "Cursor transcript",
    where="The folder ~/.cursor/projects, a zip of it, or one of the .jsonl files in it. The "
    "database has the same chats with their times.",
    becomes="each session",
    skips=SKIPPED,
    recognises=_recognises_transcript,
    members=named(r".+\.jsonl"),
    conversations=transcripts,
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
