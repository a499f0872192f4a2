"""Gemini CLI's sessions: `~/.gemini/tmp/PROJECT/chats/session-*.json`, or JSON Lines.

In JSON Lines the first line describes the session; a message that is repeated later replaces the
earlier one, and `$set` changes the description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from palace.transfer.importers.agent_session import (
    OWN_NOTE,
    RECORD,
    SKIPPED,
    THINKING,
    TOOL_CALL,
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
from palace.transfer.importers.json_stream import JsonReader

SOURCE = "gemini-cli"
_ROLES = {"user": "user", "gemini": "assistant"}
_NOTICES = {"info", "warning", "error"}
_HASH = re.compile(r"[0-9a-f]{64}")


def _recognises(head: Head) -> bool:
    record = as_mapping(head.value)
    return not head.is_listed and "sessionId" in record and "projectHash" in record


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    yield _Chat(part, latest).read()


FORMAT = Format(
    SOURCE,
    "Gemini CLI session",
    where="The folder ~/.gemini/tmp, a zip of it, or one of the session-….json files in it.",
    becomes="each session, in the wing of its project folder",
    skips=SKIPPED,
    recognises=_recognises,
    members=named(r"session-.*\.jsonl?"),
    conversations=conversations,
)


class _Chat:
    def __init__(self, part: Part, latest: datetime) -> None:
        self._part = part
        self._session = Session(SOURCE, "Gemini CLI", latest)
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
            if shown := _shown(call):
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


def _shown(call: dict[str, Any]) -> str:
    """The command or diff that Gemini CLI shows for a call; empty for other tools."""
    diff = as_mapping(call.get("resultDisplay")).get("fileDiff")
    command = as_mapping(call.get("args")).get("command")
    shown = diff if isinstance(diff, str) else command
    return shown if isinstance(shown, str) else ""
