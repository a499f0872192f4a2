"""Text files: Markdown, plain text and the history of Aider.

A transcript in Markdown becomes a conversation; any other file of either kind is one verbatim note.
Aider writes all sessions of a project folder into `.aider.chat.history.md`. There prompts stand
behind `####` and Aider's own notes behind `>`. Each such line ends with two spaces, which sets it
apart from headings and quotations in the model's answers between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath

from language.errors import BadImport
from language.storable import digest
from language.transcripts import Role, Transcript
from palace.transfer.importers.agent_sessions import COMMAND, RECORD, Session
from palace.transfer.importers.conversation import (
    Conversation,
    Gatherer,
    as_id,
    as_time,
    derived_id,
    label,
)
from palace.transfer.importers.files import Archive, Format, Head, Part, named
from palace.transfer.importers.json_stream import LARGEST_ITEM

MARKDOWN_SOURCE = "markdown"

NO_TEXT = "is not UTF-8 text; save the file as UTF-8 and import it again"
TOO_LARGE = "is larger than 128 MB"

_FILE = re.compile(r"\.(?:md|markdown)$", re.IGNORECASE)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# A file may be one long line: repetitions never overlap what follows, to avoid backtracking.
_FIELD = re.compile(r"^(title|date|created|created_at)[ \t]*:(.*)$", re.MULTILINE)
_TITLE = re.compile(r"^#[ \t]+([^ \t\r\n].*)$", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
# Speaker marks: “**You:** …” on the line, or “## You” above it.
_WHO = r"(you|me|user|human|assistant|ai|chatgpt|gpt|claude|gemini|copilot|model|system)"
_MARKS = (
    re.compile(rf"^\*\*{_WHO}[ \t]*(?::\*\*|\*\*[ \t]*:)[ \t]?", re.IGNORECASE),
    re.compile(rf"^#{{1,6}}[ \t]+{_WHO}[ \t]*(?:[:#][ \t#]*)?\r?$", re.IGNORECASE),
)
_ROLES: dict[str, Role] = dict.fromkeys(("you", "me", "user", "human"), "user")
_ROLES["system"] = "system"


def is_markdown(name: str) -> bool:
    return bool(_FILE.search(name))


def markdown_conversations_of_file(part: Part, latest: datetime) -> Iterator[Conversation]:
    yield of_file(part, part.name, latest)


def markdown_conversations(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    for name in filter(is_markdown, archive.members):
        with archive.part(name) as part:
            yield of_file(part, name, archive.written_at(name))


MARKDOWN_FORMAT = Format(
    MARKDOWN_SOURCE,
    "Markdown",
    where="A file, or a zip of a folder of them. A talk written as **You:** … and "
    "**Assistant:** …, or under headings like these, becomes a conversation; any other file is "
    "one note.",
    becomes="each file: a dialogue, or one note",
    skips="files that are not UTF-8",
    members=named(r".*\.(md|markdown)"),
    is_loose=True,
    conversations=markdown_conversations_of_file,
    of_archive=markdown_conversations,
)


def of_file(part: Part, name: str, written_at: datetime) -> Conversation:
    """A whole file.

    Args:
        written_at: The default time, if neither the file nor its name has one.
    """
    gatherer = Gatherer()
    title = PurePosixPath(name).stem
    text = read_text(part, gatherer)
    if text is not None:
        title = _read(gatherer, text, title, written_at)
    path = as_id(name)
    return gatherer.conversation(
        Transcript(MARKDOWN_SOURCE, path, label(title), gatherer.take_turns())
    )


def read_text(part: Part, gatherer: Gatherer) -> str | None:
    """The whole file; None, and counted, if it is too large or no text."""
    content = part.stream.read(LARGEST_ITEM + 1)
    text = _decoded(content) if len(content) <= LARGEST_ITEM else None
    if text is None:
        gatherer.skip(TOO_LARGE if len(content) > LARGEST_ITEM else NO_TEXT)
    return text


def _decoded(content: bytes) -> str | None:
    # Drop the byte order mark.
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return None


def _read(gatherer: Gatherer, text: str, name: str, written_at: datetime) -> str:
    """Collect the file's messages; returns its title."""
    front = _FRONT.match(text)
    fields = _fields(front[1]) if front else {}
    body = text[front.end() :] if front else text
    heading = _TITLE.search(body)
    said_at = _date(fields, name) or written_at
    kept_with = {"front_matter": front[1]} if front else None
    messages = _messages(body)
    if not messages:
        # A changed note is a new message; the earlier text stays.
        gatherer.add(f"~{digest(text)[:32]}", "user", text, said_at, metadata=kept_with)
    for place, (role, speaker, words) in enumerate(messages):
        metadata = kept_with if place == 0 else None
        gatherer.add(str(place), role, words, said_at, speaker, metadata)
    return fields.get("title") or (_title(heading[1]) if heading else name)


def _fields(front: str) -> dict[str, str]:
    fields = {key: value.removesuffix("\r").strip(" \t") for key, value in _FIELD.findall(front)}
    return {key: value.strip("\"'") for key, value in fields.items() if value}


def _title(line: str) -> str:
    """A heading's text, without closing marks."""
    return line[0] + line[1:].removesuffix("\r").rstrip(" \t#")


def _date(fields: dict[str, str], name: str) -> datetime | None:
    dated = [as_time(fields[key]) for key in ("date", "created", "created_at") if key in fields]
    day = _DAY.match(name)
    named = as_time(day[0]) if day else None
    known = next((time for time in (*dated, named) if time), None)
    return known.astimezone(UTC) if known else None


def _messages(body: str) -> list[tuple[Role, str, str]]:
    """(role, speaker, text) of each message; empty unless both sides speak, with the same marks."""
    for mark in _MARKS:
        pieces = _pieces(body, mark)
        if {"user", "assistant"} <= {role for role, _, _ in pieces}:
            return [piece for piece in pieces if piece[2].strip()]
    return []


def _pieces(body: str, mark: re.Pattern[str]) -> list[tuple[Role, str, str]]:
    """Text before the first mark becomes a system message, unless it is only a title."""
    found: list[tuple[Role, str, list[str]]] = [("system", "", [])]
    fence = ""
    for line in body.splitlines(keepends=True):
        fence = _fence_after(fence, line)
        who = None if fence else mark.match(line)
        if who:
            role = _ROLES.get(who[1].lower(), "assistant")
            found.append((role, who[1], [line[who.end() :]]))
        else:
            found[-1][2].append(line)
    intro = "".join(found[0][2])
    if _TITLE.fullmatch(intro.strip()):
        found = found[1:]
    return [(role, who, _within(lines)) for role, who, lines in found]


def _fence_after(fence: str, line: str) -> str:
    """The code fence open after the line; marks within code are ignored."""
    if not (bar := _FENCE.match(line)):
        return fence
    if not fence:
        return bar[1]
    return "" if bar[1].startswith(fence) else fence


def _within(lines: list[str]) -> str:
    """The text without the blank lines between messages."""
    return "".join(without_margin(lines)).rstrip("\r\n")


def without_margin(lines: list[str]) -> list[str]:
    """The lines without the blank ones before and after them."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


NOTE_SOURCE = "text"


def note_conversations_of_file(part: Part, latest: datetime) -> Iterator[Conversation]:
    yield _note(part, part.name, latest)


def note_conversations(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    for name in _members(archive.members):
        with archive.part(name) as part:
            yield _note(part, name, archive.written_at(name))


_members = named(r".+\.(txt|text)")
NOTE_FORMAT = Format(
    NOTE_SOURCE,
    "plain text",
    where="A .txt file, or a zip of a folder of them: each is one note.",
    becomes="each file, as one note",
    skips="files that are not UTF-8",
    members=_members,
    is_loose=True,
    conversations=note_conversations_of_file,
    of_archive=note_conversations,
)


def is_plain_text(name: str) -> bool:
    return bool(_members([name]))


def _note(part: Part, name: str, written_at: datetime) -> Conversation:
    gatherer = Gatherer()
    text = read_text(part, gatherer)
    if text is not None:
        # A changed note is a new message; the earlier text stays.
        gatherer.add(f"~{digest(text)[:32]}", "user", text, written_at)
    title = label(PurePosixPath(name).stem)
    return gatherer.conversation(Transcript(NOTE_SOURCE, as_id(name), title, gatherer.take_turns()))


AIDER_SOURCE = "aider"
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_PROMPT, _NOTE, _END = "#### ", ">", "  "
# Commands to Aider that carry a question to the model, and those that carry one to the shell.
_ASKING = ("/ask", "/code", "/architect", "/help", "/context")
_RUNNING = ("/run", "/test", "/git")


def _is_aider(head: Head) -> bool:
    return bool(_STARTED.match(head.text.lstrip()[:60]))


def aider_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """Yield the sessions, each when the next one begins; `latest` replaces missing times."""
    session = _AiderSession("", latest)
    for line in _lines(part):
        if started := _STARTED.fullmatch(line):
            yield from session.conversations()
            session = _AiderSession(started[1], latest)
        else:
            session.read(line)
    yield from session.conversations()


AIDER_FORMAT = Format(
    AIDER_SOURCE,
    "Aider chat history",
    where="The file .aider.chat.history.md in the folder of a project; it is hidden, so give the "
    "file itself.",
    becomes="each session",
    skips="Aider's notes, commands to Aider itself",
    recognises=_is_aider,
    members=named(r"aider\.chat\.history\.md"),
    conversations=aider_conversations,
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
        self._session = Session(AIDER_SOURCE, "Aider", latest)
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
