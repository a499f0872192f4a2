"""Claude Code's transcripts: `~/.claude/projects/PROJECT/SESSION.jsonl`, a record a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from palace.transfer.importers.agent_session import (
    COMMAND,
    OWN_NOTE,
    RECORD,
    SKIPPED,
    SUB_AGENT,
    THINKING,
    TOOL_CALL,
    TOOL_RESULT,
    Session,
    new_file,
    unified_diff,
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
from palace.transfer.importers.json_stream import lines_of_a_log

SOURCE = "claude-code"
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHELLS = {"Bash", "PowerShell"}
_LEFT_OUT = {
    "thinking": THINKING,
    "redacted_thinking": THINKING,
    "tool_use": TOOL_CALL,
    "tool_result": TOOL_RESULT,
    "image": "image",
    "document": "file",
}
# Claude Code writes these in the name of the user.
_NOTES = (
    *("<local-command-", "<bash-stdout>", "<bash-stderr>", "<system-reminder>"),
    *("<task-notification>", "<user-prompt-submit-hook>", "<teammate-message", "<cross-session-"),
    *("Caveat: The messages below were generated", "[Request interrupted by user"),
    "This session is being continued from a previous conversation",
)
# A later kind of title takes precedence.
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


def _recognises(head: Head) -> bool:
    record = as_mapping(head.value)
    kind = record.get("type")
    if head.is_listed or not isinstance(kind, str):
        return False
    is_summary = kind == "summary" and "leafUuid" in record
    is_snapshot = kind == "file-history-snapshot" and "snapshot" in record
    return is_summary or is_snapshot or isinstance(record.get("sessionId"), str)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    yield _Transcript(part, latest).read()


FORMAT = Format(
    SOURCE,
    "Claude Code transcript",
    where="The folder ~/.claude/projects, a zip of it, or one of the .jsonl files in it.",
    becomes="each session, in the wing of its project folder",
    skips=SKIPPED,
    recognises=_recognises,
    members=named(r".+\.jsonl"),
    conversations=conversations,
)


class _Transcript:
    def __init__(self, part: Part, latest: datetime) -> None:
        self._part = part
        self._session = Session(SOURCE, "Claude Code", latest)
        self._session_id = ""
        self._titles: dict[str, str] = {}
        self._records: set[object] = set()
        self._summaries: dict[object, str] = {}

    def read(self) -> Conversation:
        session = self._session
        for record in lines_of_a_log(self._part, session.gatherer):
            self._read_record(record)
        name = PurePosixPath(self._part.name).stem
        is_named = _SESSION.fullmatch(name)
        session.external_id = name if is_named else self._session_id or derived_id(name)
        # Older versions list the summaries of other sessions as well.
        for leaf, summary in self._summaries.items():
            if leaf in self._records:
                self._titles["summary"] = summary
        titles = (self._titles.get(kind, "") for kind in reversed(_TITLES))
        session.title = next(filter(None, titles), "")
        return session.conversation()

    def _read_record(self, record: dict[str, Any]) -> None:
        kind = record.get("type")
        self._records.add(as_id(record.get("uuid")))
        self._session_id = self._session_id or as_id(record.get("sessionId"))
        cwd = record.get("cwd")
        if isinstance(cwd, str) and not self._session.project:
            self._session.project = cwd
        self._session.at(record.get("timestamp"))
        if kind in ("user", "assistant"):
            self._read_message(record, str(kind))
        elif kind == "attachment":
            self._read_attachment(record)
        else:
            self._read_title(record, kind)

    def _read_title(self, record: dict[str, Any], kind: object) -> None:
        title = record.get(_TITLES.get(str(kind), ""))
        if not isinstance(title, str):
            self._session.gatherer.leave_out(RECORD)
        elif kind == "summary":
            self._summaries[as_id(record.get("leafUuid"))] = title
        else:
            self._titles[str(kind)] = title

    def _read_attachment(self, record: dict[str, Any]) -> None:
        """What was typed while Claude was at work."""
        attached = as_mapping(record.get("attachment"))
        prompt = attached.get("prompt")
        if attached.get("type") == "queued_command" and isinstance(prompt, str):
            self._read_text(as_id(record.get("uuid")), "user", prompt)
        else:
            self._session.gatherer.leave_out(RECORD)

    def _read_message(self, record: dict[str, Any], role: str) -> None:
        gatherer = self._session.gatherer
        content = as_mapping(record.get("message")).get("content")
        if record.get("isSidechain") is True:
            gatherer.skip(SUB_AGENT)
        elif _is_a_note(record):
            gatherer.skip(OWN_NOTE)
        elif isinstance(content, str):
            self._read_text(as_id(record.get("uuid")), role, content)
        elif isinstance(content, list):
            for number, block in enumerate(content):
                name = as_id(record.get("uuid"))
                self._read_block(record, f"{name}/{number}" if number else name, role, block)
        else:
            gatherer.skip(UNKNOWN_FORM)

    def _read_block(self, record: dict[str, Any], name: str, role: str, block: Any) -> None:
        fields = as_mapping(block)
        kind, text = fields.get("type"), fields.get("text")
        command = as_mapping(fields.get("input")).get("command")
        if kind == "text" and isinstance(text, str):
            self._read_text(name, role, text)
        elif kind == "tool_use" and str(fields.get("name")) in _SHELLS and isinstance(command, str):
            self._session.say(name, "tool", command)
        elif kind == "tool_result" and (diff := _diff(record.get("toolUseResult"))):
            self._session.say(name, "tool", diff)
        else:
            kept = _LEFT_OUT.get(str(kind), "block of another kind")
            self._session.gatherer.leave_out(kept)

    def _read_text(self, name: str, role: str, text: str) -> None:
        if role == "assistant":
            self._session.say(name, role, text)
        elif text.startswith("<bash-input>"):
            self._session.say(name, "tool", _between(text, "bash-input"))
        elif "<command-name>" in text[:2000]:
            typed = _between(text, "command-args")
            if typed.strip():
                self._session.say(name, role, f"{_between(text, 'command-name')} {typed}")
            else:
                self._session.gatherer.skip(COMMAND)
        elif text.lstrip().startswith(_NOTES):
            self._session.gatherer.skip(OWN_NOTE)
        else:
            self._session.say(name, role, text)


def _is_a_note(record: dict[str, Any]) -> bool:
    marks = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
    model = as_mapping(record.get("message")).get("model")
    return model == "<synthetic>" or any(record.get(mark) is True for mark in marks)


def _diff(result: Any) -> str:
    """The change that Claude Code shows for an edit; empty for the results of other tools."""
    fields = as_mapping(result)
    path, content = fields.get("filePath"), fields.get("content")
    if not isinstance(path, str):
        return ""
    if hunks := as_list(fields.get("structuredPatch")):
        return unified_diff(path, hunks)
    is_new = fields.get("type") == "create" and isinstance(content, str)
    return new_file(path, str(content)) if is_new else ""


def _between(text: str, tag: str) -> str:
    _, _, rest = text.partition(f"<{tag}>")
    return rest.partition(f"</{tag}>")[0]
