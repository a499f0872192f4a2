"""The sessions of Codex and Gemini CLI.

Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-*.jsonl`, a record a line. A record has a type and
a payload; in the first versions the payload was the whole line.

Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-*.json`, or JSON Lines. In these the first line
describes the session; a message that is repeated later replaces the earlier one, and `$set` changes
the description.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

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
    as_id,
    as_list,
    as_mapping,
    derived_id,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader, lines_of_a_log

CODEX_SOURCE = "codex"
_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_LEFT_OUT = {
    "reasoning": THINKING,
    "function_call": TOOL_CALL,
    "custom_tool_call": TOOL_CALL,
    "local_shell_call": TOOL_CALL,
    "web_search_call": TOOL_CALL,
    "tool_search_call": TOOL_CALL,
    "function_call_output": TOOL_RESULT,
    "custom_tool_call_output": TOOL_RESULT,
    "tool_search_output": TOOL_RESULT,
}
# Codex puts these before the first prompt, in the name of the user.
_NOTES = (
    *("<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "<permissions"),
    *("# AGENTS.md instructions", "<turn_aborted>", "<skill>", "<collaboration_mode>"),
    *("<subagent_notification>", "<user_action>", "<app-context>"),
)
_SHELL_FLAGS = {"-c", "-lc", "-Command"}


def _is_codex(head: Head) -> bool:
    record = as_mapping(head.value)
    if head.is_listed:
        return False
    is_first = {"id", "timestamp", "instructions"} <= record.keys() and "messages" not in record
    return is_first or (str(record.get("type")) in _ENVELOPES and "payload" in record)


def codex_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    yield _Rollout(part, latest).read()


CODEX_FORMAT = Format(
    CODEX_SOURCE,
    "Codex session",
    where="The folder ~/.codex/sessions, a zip of it, or one of the rollout-….jsonl files in it.",
    becomes="each session, in the wing of its project folder",
    skips=SKIPPED,
    recognises=_is_codex,
    members=named(r"rollout-.*\.jsonl"),
    conversations=codex_conversations,
)


@dataclass(frozen=True, slots=True)
class _Said:
    """Something to be said; `is_event`: by an event, which has the prompt as it was typed."""

    name: str
    role: str
    text: str
    time: object
    is_event: bool = False


class _Rollout:
    def __init__(self, part: Part, latest: datetime) -> None:
        self._part = part
        self._session = Session(CODEX_SOURCE, "Codex", latest)
        self._said: list[_Said] = []
        self._time: object = None
        self._line = 0

    def read(self) -> Conversation:
        session = self._session
        for number, record in enumerate(lines_of_a_log(self._part, session.gatherer)):
            self._line = number
            self._time = record.get("timestamp") or self._time
            payload = record.get("payload")
            self._read_record(record.get("type"), as_mapping(payload) if payload else record)
        session.external_id = session.external_id or derived_id(PurePosixPath(self._part.name).stem)
        has_events = any(said.is_event for said in self._said)
        for said in self._said:
            # An event repeats a prompt, without what Codex adds to it.
            if said.role != "user" or said.is_event == has_events:
                session.at(said.time)
                session.say(said.name, said.role, said.text)
        return session.conversation()

    def _read_record(self, kind: object, payload: dict[str, Any]) -> None:
        if kind == "session_meta" or (kind is None and "instructions" in payload):
            self._read_meta(payload)
        elif kind == "event_msg":
            text = payload.get("message")
            if payload.get("type") == "user_message" and isinstance(text, str):
                self._say("user", text, is_event=True)
        elif payload.get("type") == "message":
            self._read_message(payload)
        elif command := _command(payload):
            self._say("tool", command)
        else:
            self._session.gatherer.leave_out(_LEFT_OUT.get(str(payload.get("type")), RECORD))

    def _read_meta(self, payload: dict[str, Any]) -> None:
        """The first one is the session's own; a forked session repeats its parent's."""
        session, cwd = self._session, payload.get("cwd")
        if not session.external_id:
            session.external_id = as_id(payload.get("id"))
            session.project = cwd if isinstance(cwd, str) else ""
            session.is_sub_agents = "subagent" in as_mapping(payload.get("source"))

    def _read_message(self, payload: dict[str, Any]) -> None:
        gatherer, role = self._session.gatherer, str(payload.get("role"))
        texts = []
        for piece in map(as_mapping, as_list(payload.get("content"))):
            if isinstance(piece.get("text"), str):
                texts.append(piece["text"])
            else:
                gatherer.leave_out("image")
        if role not in ("user", "assistant"):
            gatherer.skip(OWN_NOTE)
            return
        for text in texts:
            self._say(role, text)

    def _say(self, role: str, text: str, *, is_event: bool = False) -> None:
        if role == "user" and text.lstrip().startswith(_NOTES):
            self._session.gatherer.skip(OWN_NOTE)
            return
        # Records have no ids, but files are only ever added to.
        self._said.append(_Said(str(self._line), role, text, self._time, is_event))


def _command(payload: dict[str, Any]) -> str:
    """The command or patch of a call, as Codex shows it; empty for calls of other tools."""
    kind, name = payload.get("type"), str(payload.get("name"))
    if kind == "custom_tool_call" and name in ("apply_patch", "exec"):
        text = payload.get("input")
        return text if isinstance(text, str) else ""
    if kind == "local_shell_call":
        return _codex_shown(as_mapping(payload.get("action")).get("command"))
    if kind != "function_call" or not any(each in name for each in ("shell", "exec", "patch")):
        return ""
    arguments = _arguments(payload.get("arguments"))
    given = (arguments.get(key) for key in ("command", "cmd", "input", "patch"))
    return next(filter(None, map(_codex_shown, given)), "")


def _arguments(text: object) -> dict[str, Any]:
    try:
        return as_mapping(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}


def _codex_shown(command: Any) -> str:
    if isinstance(command, str):
        return command
    words = [word for word in as_list(command) if isinstance(word, str)]
    if len(words) == 3 and words[1] in _SHELL_FLAGS:
        return words[2]
    is_patch = len(words) == 2 and words[0] == "apply_patch"
    return words[1] if is_patch else shlex.join(words)


GEMINI_CLI_SOURCE = "gemini-cli"
_ROLES = {"user": "user", "gemini": "assistant"}
_NOTICES = {"info", "warning", "error"}
_HASH = re.compile(r"[0-9a-f]{64}")


def _is_gemini_cli(head: Head) -> bool:
    record = as_mapping(head.value)
    return not head.is_listed and "sessionId" in record and "projectHash" in record


def gemini_cli_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    yield _Chat(part, latest).read()


GEMINI_CLI_FORMAT = Format(
    GEMINI_CLI_SOURCE,
    "Gemini CLI session",
    where="The folder ~/.gemini/tmp, a zip of it, or one of the session-….json files in it.",
    becomes="each session, in the wing of its project folder",
    skips=SKIPPED,
    recognises=_is_gemini_cli,
    members=named(r"session-.*\.jsonl?"),
    conversations=gemini_cli_conversations,
)


class _Chat:
    def __init__(self, part: Part, latest: datetime) -> None:
        self._part = part
        self._session = Session(GEMINI_CLI_SOURCE, "Gemini CLI", latest)
        self._about: dict[str, Any] = {}
        self._messages: dict[str, dict[str, Any]] = {}

    def read(self) -> Conversation:
        session, reader = self._session, JsonReader(self._part)
        while reader.peek():
            self._read_record(as_mapping(reader.value()))
        about = self._about
        name = PurePosixPath(self._part.name).stem
        session.external_id = as_id(about.get("sessionId")) or derived_id(name)
        session.title = str(about.get("summary") or "")
        session.project = self._project()
        session.is_sub_agents = about.get("kind") == "subagent"
        session.at(about.get("startTime"))
        for key, message in self._messages.items():
            self._read_message(key, message)
        return session.conversation()

    def _read_record(self, record: dict[str, Any]) -> None:
        about = as_mapping(record.get("$set")) or record
        if "type" in record:
            self._keep(record)
        elif "$rewindTo" in record:
            self._session.gatherer.leave_out(RECORD)
        else:
            self._about |= {key: value for key, value in about.items() if key != "messages"}
            for message in as_list(about.get("messages")):
                self._keep(message)

    def _keep(self, message: Any) -> None:
        fields = as_mapping(message)
        self._messages[as_id(fields.get("id")) or str(len(self._messages))] = fields

    def _project(self) -> str:
        """The session's folder; where only a digest of its path is known, that."""
        folders = [each for each in as_list(self._about.get("directories")) if each]
        folder = PurePosixPath(self._part.name).parent
        if folders and isinstance(folders[0], str):
            return folders[0]
        if folder.name == "chats" and folder.parent.name not in ("", "tmp"):
            name = folder.parent.name
        else:
            name = as_id(self._about.get("projectHash"))
        return f"Gemini project {name[:8]}" if _HASH.fullmatch(name) else name

    def _read_message(self, key: str, message: dict[str, Any]) -> None:
        session, kind = self._session, str(message.get("type"))
        session.at(message.get("timestamp"))
        if kind in _NOTICES:
            session.gatherer.skip(OWN_NOTE)
            return
        if kind not in _ROLES:
            session.gatherer.skip(UNKNOWN_FORM)
            return
        for _ in as_list(message.get("thoughts")):
            session.gatherer.leave_out(THINKING)
        text = self._text(message.get("displayContent") or message.get("content"))
        calls = as_list(message.get("toolCalls"))
        if text or not calls:
            session.say(key, _ROLES[kind], text)
        for number, call in enumerate(map(as_mapping, calls)):
            if shown := _gemini_cli_shown(call):
                session.say(f"{key}/{number}", "tool", shown)
            else:
                session.gatherer.leave_out(TOOL_CALL)

    def _text(self, content: Any) -> str:
        if isinstance(content, str):
            return content
        texts = []
        for piece in content if isinstance(content, list) else [content]:
            text = piece if isinstance(piece, str) else as_mapping(piece).get("text")
            if isinstance(text, str):
                texts.append(text)
            elif piece is not None:
                self._session.gatherer.leave_out("file")
        return "".join(texts)


def _gemini_cli_shown(call: dict[str, Any]) -> str:
    """The command or diff that Gemini CLI shows for a call; empty for other tools."""
    diff = as_mapping(call.get("resultDisplay")).get("fileDiff")
    command = as_mapping(call.get("args")).get("command")
    shown = diff if isinstance(diff, str) else command
    return shown if isinstance(shown, str) else ""
