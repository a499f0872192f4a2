"""Sessions of coding agents: what they have in common, and those of Claude Code.

What people see of a session becomes a conversation: words, commands and diffs stay; what tools
answer, reasoning and the program's own records do not.

Claude Code's transcripts are `~/.claude/projects/PROJECT/SESSION.jsonl`, a record a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

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
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import lines_of_a_log

OWN_NOTE = "is a note of the program, not of a person or the model"
SUB_AGENT = "is between the agent and a sub-agent"
COMMAND = "is a command to the program itself"
SKIPPED = "answers of tools, reasoning, notes of the program, sub-agents, images"
TITLE_LENGTH = 80
TOOL_CALL, TOOL_RESULT, THINKING = "tool call", "tool result", "thinking"
RECORD = "record of the program"


class Session:
    """Collects a session in order.

    Attributes:
        external_id: The session's id.
        title: Its title; by default its first prompt.
        project: The path of its folder.
        is_sub_agents: Whether a program wrote the prompts.
    """

    def __init__(self, source: str, agent: str, latest: datetime) -> None:
        self.external_id = ""
        self.title = ""
        self.project = ""
        self.is_sub_agents = False
        self.gatherer = Gatherer()
        self._source = source
        self._agent = agent
        self._said_at = latest
        self._first_prompt = ""

    def at(self, time: object) -> None:
        """Set the time of what follows; without one, it is that of what came before."""
        self._said_at = as_time(time) or self._said_at

    def say(self, external_id: str, role: str, text: str) -> None:
        if self.is_sub_agents:
            self.gatherer.skip(SUB_AGENT)
            return
        if role == "user" and not self._first_prompt:
            self._first_prompt = _first_line(text)
        name = as_id(external_id) or str(len(self.gatherer.turns))
        self.gatherer.add(name, role, text, self._said_at)

    def conversation(self) -> Conversation:
        transcript = Transcript(
            self._source,
            as_id(self.external_id) or "~",
            label(self.title or self._first_prompt),
            self.gatherer.take_turns(),
            self._agent,
            label(self.project),
        )
        return self.gatherer.conversation(transcript)


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def unified_diff(path: str, hunks: Iterable[Any]) -> str:
    """Hunks as {"oldStart", "oldLines", "newStart", "newLines", "lines"}."""
    lines = [f"--- {path}", f"+++ {path}"]
    for hunk in hunks:
        changed = hunk.get("lines") if isinstance(hunk, dict) else None
        if isinstance(changed, list):
            old = f"{hunk.get('oldStart')},{hunk.get('oldLines')}"
            new = f"{hunk.get('newStart')},{hunk.get('newLines')}"
            lines += [f"@@ -{old} +{new} @@", *(line for line in changed if isinstance(line, str))]
    return "\n".join(lines) if len(lines) > 2 else ""


def new_file(path: str, content: str) -> str:
    """The diff that adds a file."""
    added = "\n".join(f"+{line}" for line in content.split("\n"))
    return f"--- /dev/null\n+++ {path}\n{added}"


CLAUDE_CODE_SOURCE = "claude-code"
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


def _is_claude_code(head: Head) -> bool:
    record = as_mapping(head.value)
    kind = record.get("type")
    if head.is_listed or not isinstance(kind, str):
        return False
    is_summary = kind == "summary" and "leafUuid" in record
    is_snapshot = kind == "file-history-snapshot" and "snapshot" in record
    return is_summary or is_snapshot or isinstance(record.get("sessionId"), str)


def claude_code_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    yield _Transcript(part, latest).read()


CLAUDE_CODE_FORMAT = Format(
    CLAUDE_CODE_SOURCE,
    "Claude Code transcript",
    where="The folder ~/.claude/projects, a zip of it, or one of the .jsonl files in it.",
    becomes="each session, in the wing of its project folder",
    skips=SKIPPED,
    recognises=_is_claude_code,
    members=named(r".+\.jsonl"),
    conversations=claude_code_conversations,
)


class _Transcript:
    def __init__(self, part: Part, latest: datetime) -> None:
        self._part = part
        self._session = Session(CLAUDE_CODE_SOURCE, "Claude Code", latest)
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
