"""Cursor's own database, `globalStorage/state.vscdb`: SQLite, with JSON by key in `cursorDiskKV`.

`composerData:CHAT` describes a chat and lists its messages, `bubbleId:CHAT:MESSAGE` is one of them.
Earlier versions had the messages of a chat within its description.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from language.errors import BadImport
from palace.transfer.importers.agent_sessions import OWN_NOTE, SKIPPED, THINKING, TOOL_CALL, Session
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    as_id,
    as_list,
    as_mapping,
)
from palace.transfer.importers.files import CHUNK, Format, Head, Part, named
from palace.transfer.importers.json_stream import LARGEST_ITEM

SOURCE = "cursor-database"
NOT_SHOWN = "is no longer shown in its chat"
MISSING = "is listed in its chat, but not in the database"
_MAGIC = "SQLite format 3\0"
_ROLES = {1: "user", 2: "assistant"}
# A tuple, as what is looked up in it may be anything.
_SHELLS = ("run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2")
_CHATS = "composerData:"
# In the order of keys, `;` comes directly after `:`.
_LIST = (
    "SELECT CAST(key AS BLOB), CAST(value AS BLOB) FROM cursorDiskKV "
    "WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
)
_ONE = "SELECT CAST(value AS BLOB) FROM cursorDiskKV WHERE key = ?"
_COUNT = "SELECT count(*) FROM cursorDiskKV WHERE key >= ? AND key < ?"
_HEADERS = "composerHeaders"
_SUB_AGENTS = "SELECT CAST(composerId AS BLOB) FROM composerHeaders WHERE isSubagent"
_FOLDERS = "SELECT CAST(composerId AS BLOB), CAST(value AS BLOB) FROM composerHeaders"
_TABLES = (
    "SELECT CAST(name AS BLOB), CAST(sql AS BLOB) FROM sqlite_master WHERE type = 'table' "
    "AND sql LIKE 'CREATE TABLE%'"
)
# A computed column may be of any size, and by a collation one row may answer to many keys.
_COMPUTES = re.compile(r"\b(?:AS|GENERATED|COLLATE)\b", re.IGNORECASE)


def _recognises(head: Head) -> bool:
    return head.text.startswith(_MAGIC)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    try:
        with _path_of(part) as path, closing(_opened(path)) as database:
            if "cursorDiskKV" not in _tables(database):
                raise BadImport(
                    f"{part.name} is a database, but not the one with Cursor's chats; give the "
                    "state.vscdb in Cursor's folder User/globalStorage."
                )
            folders, sub_agents = _folders(database), _sub_agents(database)
            for key, value in database.execute(_LIST):
                name = as_id(_text(key).removeprefix(_CHATS))
                chat = _Chat(database, name, as_mapping(_json(value)), latest)
                chat.session.project = folders.get(name, "")
                chat.session.is_sub_agents = name in sub_agents
                yield chat.read()
    except sqlite3.Error as error:
        raise BadImport(
            f"{part.name} cannot be read as a database ({error}). Close Cursor, and give a copy of "
            "the file."
        ) from error


FORMAT = Format(
    SOURCE,
    "Cursor database",
    where="The state.vscdb in Cursor's folder User/globalStorage (on Linux in ~/.config/Cursor), "
    "with all chats.",
    becomes="each chat, in the wing of its project folder if it is known",
    skips=SKIPPED.replace("sub-agents, ", "messages that a chat no longer shows, "),
    recognises=_recognises,
    members=named(r"state\.vscdb"),
    conversations=conversations,
)


@contextmanager
def _path_of(part: Part) -> Iterator[Path]:
    """The file itself, beside which may lie what SQLite has not yet put into it; or a copy."""
    if part.path is not None:
        yield part.path
        return
    with tempfile.NamedTemporaryFile(suffix=".vscdb") as copy:
        try:
            shutil.copyfileobj(part.stream, copy, CHUNK)
            copy.flush()
        except OSError as error:
            raise BadImport(
                f"{part.name} cannot be unpacked: {error.strerror}. Unpack it yourself, and give "
                "the file inside."
            ) from error
        yield Path(copy.name)


def _opened(path: Path) -> sqlite3.Connection:
    """Read-only. The file may be anyone's: its schema runs no functions, and values are limited."""
    database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_ITEM)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _tables(database: sqlite3.Connection) -> set[str]:
    """The tables of plain columns; a view could compute for ever."""
    return {
        _text(name)
        for name, made_by in database.execute(_TABLES)
        if not _COMPUTES.search(_text(made_by))
    }


def _folders(database: sqlite3.Connection) -> dict[str, str]:
    """The project folder of each chat that newer versions know one of."""
    found: dict[str, str] = {}
    if _HEADERS not in _tables(database):
        return found
    for name, value in database.execute(_FOLDERS):
        about = as_mapping(as_mapping(_json(value)).get("workspaceIdentifier"))
        folder = as_mapping(about.get("uri")).get("fsPath")
        if isinstance(folder, str):
            found[as_id(_text(name))] = folder
    return found


def _sub_agents(database: sqlite3.Connection) -> set[str]:
    """The chats whose prompts a program wrote."""
    if _HEADERS not in _tables(database):
        return set()
    columns = database.execute("SELECT CAST(name AS BLOB) FROM pragma_table_info(?)", (_HEADERS,))
    if "isSubagent" not in {_text(name) for (name,) in columns}:
        return set()
    return {as_id(_text(name)) for (name,) in database.execute(_SUB_AGENTS)}


class _Chat:
    """Reads the messages of a chat in the order in which Cursor shows them.

    Attributes:
        session: Collects the messages.
    """

    def __init__(
        self, database: sqlite3.Connection, name: str, about: dict[str, Any], latest: datetime
    ) -> None:
        self._database = database
        self._name = name
        self._about = about
        self.session = Session(SOURCE, "Cursor", latest)
        self.session.external_id = name
        title = about.get("name")
        self.session.title = title if isinstance(title, str) else ""
        self.session.at(_time(about.get("createdAt")))

    def read(self) -> Conversation:
        for bubble in map(as_mapping, as_list(self._about.get("conversation"))):
            self._read_bubble(as_id(bubble.get("bubbleId")), bubble)
        listed = as_list(self._about.get("fullConversationHeadersOnly"))
        # Each once: a large message that is listed many times would be read as often.
        names = dict.fromkeys(as_id(header.get("bubbleId")) for header in map(as_mapping, listed))
        found = 0
        for name in names:
            bubble = self._bubble(name)
            if bubble is None:
                self.session.gatherer.skip(MISSING)
            else:
                found += 1
                self._read_bubble(name, as_mapping(bubble))
        beginning = f"bubbleId:{self._name}"
        [(stored,)] = self._database.execute(_COUNT, (f"{beginning}:", f"{beginning};"))
        for _ in range(stored - found):
            self.session.gatherer.skip(NOT_SHOWN)
        return self.session.conversation()

    def _bubble(self, name: str) -> Any:
        row = self._database.execute(_ONE, (f"bubbleId:{self._name}:{name}",)).fetchone()
        return None if row is None else _json(row[0])

    def _read_bubble(self, name: str, bubble: dict[str, Any]) -> None:
        session, gatherer = self.session, self.session.gatherer
        session.at(_time(bubble.get("createdAt")))
        session.project = session.project or _workspace(bubble)
        for _ in as_list(bubble.get("images")):
            gatherer.leave_out("image")
        role, text = _role(bubble), bubble.get("text", "")
        is_thought = bool(as_mapping(bubble.get("thinking")).get("text"))
        call = as_mapping(bubble.get("toolFormerData"))
        if is_thought:
            gatherer.leave_out(THINKING)
        if role is None or not isinstance(text, str):
            gatherer.skip(UNKNOWN_FORM)
        elif bubble.get("serviceStatusUpdate") or bubble.get("errorDetails"):
            gatherer.skip(OWN_NOTE)
        elif text.strip() or not (call or is_thought):
            session.say(name, role, text)
        if call:
            self._read_call(f"{name}/call", call)

    def _read_call(self, name: str, call: dict[str, Any]) -> None:
        if shown := _command(call) or _diff(call):
            self.session.say(name, "tool", shown)
        else:
            self.session.gatherer.leave_out(TOOL_CALL)


def _command(call: dict[str, Any]) -> str:
    """The command of a call of the terminal; empty for other tools."""
    if call.get("name") not in _SHELLS:
        return ""
    given = (_arguments(call.get(key)).get("command") for key in ("params", "rawArgs"))
    return next((text for text in given if isinstance(text, str) and text.strip()), "")


def _diff(call: dict[str, Any]) -> str:
    """The change that Cursor shows for an edit; empty for other tools."""
    chunks = as_list(as_mapping(_arguments(call.get("result")).get("diff")).get("chunks"))
    shown = [as_mapping(chunk).get("diffString") for chunk in chunks]
    texts = [text for text in shown if isinstance(text, str) and text.strip()]
    path = _arguments(call.get("params")).get("relativeWorkspacePath")
    if texts and isinstance(path, str):
        texts = [f"--- {path}", f"+++ {path}", *texts]
    return "\n".join(texts)


def _role(bubble: dict[str, Any]) -> str | None:
    kind = bubble.get("type")
    return _ROLES.get(kind) if isinstance(kind, int) else None


def _workspace(bubble: dict[str, Any]) -> str:
    """The folder that was open, where a message names one."""
    for address in as_list(bubble.get("workspaceUris")):
        if isinstance(address, str) and address.startswith("file:"):
            with suppress(ValueError):
                return unquote(urlsplit(address).path)
    return ""


def _arguments(given: Any) -> dict[str, Any]:
    """What a call was given or gave, which is JSON within the JSON in most versions."""
    return as_mapping(_json(given) if isinstance(given, str) else given)


def _time(stamp: Any) -> Any:
    """Milliseconds as seconds; an ISO time as it is; nothing for a number beyond all times."""
    try:
        return stamp / 1000 if isinstance(stamp, int | float) else stamp
    except OverflowError:
        return None


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _json(value: Any) -> Any:
    """The value; None if it is no JSON."""
    try:
        return json.loads(value)
    except (ValueError, TypeError, RecursionError):
        return None
