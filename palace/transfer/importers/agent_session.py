"""What sessions of coding agents have in common: what people see of them becomes a conversation.

Words, commands and diffs stay; what tools answer, reasoning and the program's own records do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from language.transcripts import Transcript
from palace.transfer.importers.conversation import (
    Conversation,
    Gatherer,
    as_id,
    as_time,
    label,
)

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
