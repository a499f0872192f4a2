"""The chats of Cursor and of GitHub Copilot in VS Code.

Cursor: its "Export chat", and the transcripts of its agent. An exported chat is Markdown; above
each message are a rule and `**User**` or `**Cursor**`. A transcript is
`~/.cursor/projects/PROJECT/agent-transcripts/CHAT/CHAT.jsonl`: a message a line, without an id or a
time. Its line is its id, as lines are only added.

Copilot: what "Export Chat" writes, and the files VS Code keeps. Those are one object, or a log of
its changes: JSON Lines, of which the first has the whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from language.transcripts import Role, Transcript
from palace.transfer.importers.agent_sessions import (
    OWN_NOTE,
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
    as_id,
    as_list,
    as_mapping,
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader, head_text, lines_of_a_log
from palace.transfer.importers.text_files import read_text, without_margin

CURSOR_SOURCE = "cursor"
_HEAD = re.compile(r"# [^\n]*\n_Exported on [^\n]{1,80} from Cursor \([^\n)]{1,40}\)_\r?\n")
_MARKS: dict[str, Role] = {"**User**": "user", "**Cursor**": "assistant"}
_RULE = "---"


def _is_cursor(head: Head) -> bool:
    return bool(_HEAD.match(head.text))


def cursor_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
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
        Transcript(CURSOR_SOURCE, name, label(title), gatherer.take_turns(), "Cursor")
    )


CURSOR_FORMAT = Format(
    CURSOR_SOURCE,
    "Cursor chat",
    where="In Cursor, in the menu of a chat: Export chat. Give the cursor_….md, or a zip or folder "
    "of several.",
    becomes="each file",
    skips="files that are not UTF-8",
    recognises=_is_cursor,
    members=named(r"cursor_.+\.md"),
    conversations=cursor_conversations,
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
_CURSOR_LEFT_OUT = {
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
        session.gatherer.leave_out(_CURSOR_LEFT_OUT.get(str(kind), "block of another kind"))


def _typed(text: str) -> str:
    _, mark, rest = text.partition(_BEGIN)
    typed, end, _ = rest.rpartition(_END)
    return typed if mark and end else text


COPILOT_SOURCE = "copilot"
_WHOLE, _SET, _PUSH, _DELETE = range(4)
_LOG = re.compile(r'\s*\{\s*"kind"\s*:')
_LOCAL = "file://"
_WORDS = {"markdownContent", "markdownVuln"}
_COPILOT_LEFT_OUT = {
    "thinking": THINKING,
    "toolInvocation": TOOL_CALL,
    "toolInvocationSerialized": TOOL_CALL,
    "textEditGroup": "edit",
    "notebookEditGroup": "edit",
}


def _is_copilot(head: Head) -> bool:
    fields = as_mapping(head.value)
    if fields.get("kind") == _WHOLE:
        fields = as_mapping(fields.get("v"))
    beside = {"responderUsername", "initialLocation", "creationDate"} & fields.keys()
    return not head.is_listed and "requests" in fields and bool(beside)


def copilot_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    if not _LOG.match(head_text(part)):
        reader = JsonReader(part)
        yield _Chat(as_mapping(reader.value()), latest).read()
        if reader.peek():
            reader.fail("goes on after its object has ended")
        return
    state: Any = {}
    broken = Gatherer()
    for change in lines_of_a_log(part, broken):
        state = _changed(state, change)
    chat = _Chat(as_mapping(state), latest)
    chat.session.gatherer.skipped.update(broken.skipped)
    yield chat.read()


COPILOT_FORMAT = Format(
    COPILOT_SOURCE,
    "Copilot chat",
    where="In VS Code, in the command palette: Chat: Export Chat…; or a folder chatSessions of "
    "VS Code's workspaceStorage, or a file in it.",
    becomes="each chat, in the wing of its project folder if it is known",
    skips=SKIPPED.replace("sub-agents, ", "edits, "),
    recognises=_is_copilot,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=copilot_conversations,
)


def _changed(state: Any, change: dict[str, Any]) -> Any:
    """The chat after a line of its log. A path that does not exist changes nothing."""
    kind, path, value = change.get("kind"), as_list(change.get("k")), change.get("v")
    if kind == _WHOLE:
        return value
    inner = state
    for key in path[:-1]:
        inner = _item(inner, key)
    if not path:
        return state
    if kind == _PUSH:
        _push(_item(inner, path[-1]), change.get("i"), as_list(value))
    elif kind == _SET:
        _set(inner, path[-1], value)
    elif kind == _DELETE and isinstance(inner, dict) and isinstance(path[-1], str):
        inner.pop(path[-1], None)
    return state


def _item(inner: Any, key: Any) -> Any:
    if isinstance(inner, dict):
        return inner.get(key) if isinstance(key, str) else None
    has_it = isinstance(inner, list) and isinstance(key, int) and 0 <= key < len(inner)
    return inner[key] if has_it else None


def _set(inner: Any, key: Any, value: Any) -> None:
    is_place = isinstance(inner, list) and isinstance(key, int) and 0 <= key < len(inner)
    if is_place or (isinstance(inner, dict) and isinstance(key, str)):
        inner[key] = value


def _push(found: Any, length: Any, items: list[Any]) -> None:
    if isinstance(found, list):
        if isinstance(length, int) and length >= 0:
            del found[length:]
        found.extend(items)


class _Chat:
    """Reads the requests, each with the pieces of its response.

    Attributes:
        session: Collects the messages.
    """

    def __init__(self, chat: dict[str, Any], latest: datetime) -> None:
        agent, title, folder = map(
            chat.get, ("responderUsername", "customTitle", "workingDirectory")
        )
        self.session = Session(
            COPILOT_SOURCE, agent if isinstance(agent, str) else "Copilot", latest
        )
        self.session.title = title if isinstance(title, str) else ""
        if isinstance(folder, str) and folder.startswith(_LOCAL):
            self.session.project = unquote(folder.removeprefix(_LOCAL))
        self.session.at(_seconds(chat.get("creationDate")))
        self._requests = [as_mapping(each) for each in as_list(chat.get("requests"))]
        first = next(iter(self._requests), {})
        own = as_id(chat.get("sessionId"))
        self.session.external_id = own or derived_id(first.get("requestId"), _words(first))
        self._texts: list[str] = []

    def read(self) -> Conversation:
        for place, request in enumerate(self._requests):
            self._read_request(as_id(request.get("requestId")) or str(place), request)
        return self.session.conversation()

    def _read_request(self, name: str, request: dict[str, Any]) -> None:
        self.session.at(_seconds(request.get("timestamp")))
        text = _words(request)
        if request.get("isSystemInitiated") is True:
            self.session.gatherer.skip(OWN_NOTE)
        elif text is None:
            self.session.gatherer.skip(UNKNOWN_FORM)
        else:
            self.session.say(name, "user", text)
        for place, piece in enumerate(as_list(request.get("response"))):
            self._read_piece(f"{name}/{place}", as_mapping(piece))
        self._flush(f"{name}/~")

    def _read_piece(self, name: str, piece: dict[str, Any]) -> None:
        kind = str(piece.get("kind", ""))
        text = _text_of(kind, piece)
        if text is not None:
            self._texts.append(text)
        elif command := _command(piece):
            self._flush(f"{name}~")
            self.session.say(name, "tool", command)
        else:
            self.session.gatherer.leave_out(_COPILOT_LEFT_OUT.get(kind, RECORD))
            if kind in _COPILOT_LEFT_OUT:
                self._texts.append("\n\n")  # What is shown there parts the words around it.

    def _flush(self, name: str) -> None:
        text = _joined(self._texts)
        self._texts = []
        if text:
            self.session.say(name, "assistant", text)


def _joined(texts: list[str]) -> str:
    """The pieces as one text, with at most one break between two of them."""
    kept: list[str] = []
    for text in texts:
        if text != "\n\n" or (kept and kept[-1] != text):
            kept.append(text)
    while kept and kept[-1] == "\n\n":
        kept.pop()
    whole = "".join(kept)
    return whole if whole.strip() else ""


def _words(request: dict[str, Any]) -> str | None:
    message = request.get("message")
    text = message if isinstance(message, str) else as_mapping(message).get("text")
    return text if isinstance(text, str) else None


def _text_of(kind: str, piece: dict[str, Any]) -> str | None:
    """The words of a piece: of Markdown, or the name of a file or symbol within a sentence."""
    if kind == "inlineReference":
        where = as_mapping(piece.get("inlineReference"))
        path = where.get("path") or as_mapping(where.get("uri")).get("path")
        name = piece.get("name") or where.get("name") or str(path or "").rpartition("/")[2]
        return name if isinstance(name, str) else ""
    content = piece.get("content", piece.get("value")) if kind in _WORDS else piece.get("value")
    text = as_mapping(content).get("value", content)
    return text if isinstance(text, str) and (not kind or kind in _WORDS) else None


def _command(piece: dict[str, Any]) -> str:
    """The command of a call of the terminal; empty for other pieces."""
    data = as_mapping(piece.get("toolSpecificData"))
    line = as_mapping(data.get("commandLine"))
    given = (line.get("userEdited"), line.get("toolEdited"), line.get("original"))
    found = (*given, data.get("command"))
    return next((text for text in found if isinstance(text, str) and text.strip()), "")


def _seconds(stamp: Any) -> Any:
    return stamp / 1000 if isinstance(stamp, int | float) else stamp
