"""Aider's `.aider.chat.history.md`: all sessions of a project folder in one Markdown file.

Prompts stand behind `####` and Aider's own notes behind `>`. Each such line ends with two spaces,
which sets it apart from headings and quotations in the model's answers between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from language.errors import BadImport
from palace.transfer.importers.agent_session import COMMAND, RECORD, Session
from palace.transfer.importers.conversation import Conversation, derived_id
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import LARGEST_ITEM
from palace.transfer.importers.markdown import without_margin

SOURCE = "aider"
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_PROMPT, _NOTE, _END = "#### ", ">", "  "
# Commands to Aider that carry a question to the model, and those that carry one to the shell.
_ASKING = ("/ask", "/code", "/architect", "/help", "/context")
_RUNNING = ("/run", "/test", "/git")


def _recognises(head: Head) -> bool:
    return bool(_STARTED.match(head.text.lstrip()[:60]))


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """Yield the sessions, each when the next one begins; `latest` replaces missing times."""
    session = _AiderSession("", latest)
    for line in _lines(part):
        if started := _STARTED.fullmatch(line):
            yield from session.conversations()
            session = _AiderSession(started[1], latest)
        else:
            session.read(line)
    yield from session.conversations()


FORMAT = Format(
    SOURCE,
    "Aider chat history",
    where="The file .aider.chat.history.md in the folder of a project; it is hidden, so give the "
    "file itself.",
    becomes="each session",
    skips="Aider's notes, commands to Aider itself",
    recognises=_recognises,
    members=named(r"aider\.chat\.history\.md"),
    conversations=conversations,
)


def _lines(part: Part) -> Iterator[str]:
    while line := part.stream.readline(LARGEST_ITEM):
        try:
            yield line.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise BadImport(f"{part.name} is not UTF-8 text; nothing was imported.") from error


class _AiderSession:
    """Gathers lines of one kind into messages."""

    def __init__(self, started: str, latest: datetime) -> None:
        self._session = Session(SOURCE, "Aider", latest)
        self._session.at(started)
        self._started = started
        self._first_prompt = ""
        self._kind = ""
        self._lines: list[str] = []
        self._line = self._first_line = 0
        # An editor may have taken away the spaces; the first line, a note, shows it.
        self._end: str | None = None

    def read(self, line: str) -> None:
        if self._end is None and line.strip():
            self._end = _END if line.endswith(_END) or not line.startswith(_NOTE) else ""
        kind, text = self._kind_of(line)
        if kind != self._kind:
            self._flush()
            self._kind, self._first_line = kind, self._line
        self._lines.append(text)
        self._line += 1

    def conversations(self) -> Iterator[Conversation]:
        """The session, unless it is empty."""
        self._flush()
        # The time alone could be that of a session in another project.
        self._session.external_id = derived_id(self._started, self._first_prompt)
        found = self._session.conversation()
        if found.turns or found.skipped or found.left_out:
            yield found

    def _kind_of(self, line: str) -> tuple[str, str]:
        if line.endswith(self._end or ""):
            if line.startswith(_PROMPT):
                return "user", line.removeprefix(_PROMPT).removesuffix(_END)
            if line.startswith(_NOTE):
                return "note", line
        return "assistant", line

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if self._kind == "note":
            self._session.gatherer.leave_out(RECORD)
        elif self._kind == "user":
            self._say_prompt("\n".join(lines))
        elif any(line.strip() for line in lines):
            self._session.say(str(self._first_line), "assistant", "\n".join(without_margin(lines)))

    def _say_prompt(self, text: str) -> None:
        self._first_prompt = self._first_prompt or text
        command, _, _ = text.partition(" ")
        if command in _RUNNING or text.startswith("!"):
            self._session.say(str(self._first_line), "tool", text)
        elif text.startswith("/") and command not in _ASKING:
            self._session.gatherer.skip(COMMAND)
        else:
            self._session.say(str(self._first_line), "user", text)
