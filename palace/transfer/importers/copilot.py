"""GitHub Copilot's chats in VS Code: what "Export Chat" writes, and the files VS Code keeps.

Those are one object, or a log of its changes: JSON Lines, of which the first has the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import unquote

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
    Gatherer,
    as_id,
    as_list,
    as_mapping,
    derived_id,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader, head_text, lines_of_a_log

SOURCE = "copilot"
_WHOLE, _SET, _PUSH, _DELETE = range(4)
_LOG = re.compile(r'\s*\{\s*"kind"\s*:')
_LOCAL = "file://"
_WORDS = {"markdownContent", "markdownVuln"}
_LEFT_OUT = {
    "thinking": THINKING,
    "toolInvocation": TOOL_CALL,
    "toolInvocationSerialized": TOOL_CALL,
    "textEditGroup": "edit",
    "notebookEditGroup": "edit",
}


def _recognises(head: Head) -> bool:
    fields = as_mapping(head.value)
    if fields.get("kind") == _WHOLE:
        fields = as_mapping(fields.get("v"))
    beside = {"responderUsername", "initialLocation", "creationDate"} & fields.keys()
    return not head.is_listed and "requests" in fields and bool(beside)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
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


FORMAT = Format(
    SOURCE,
    "Copilot chat",
    where="In VS Code, in the command palette: Chat: Export Chat…; or a folder chatSessions of "
    "VS Code's workspaceStorage, or a file in it.",
    becomes="each chat, in the wing of its project folder if it is known",
    skips=SKIPPED.replace("sub-agents, ", "edits, "),
    recognises=_recognises,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=conversations,
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
        self.session = Session(SOURCE, agent if isinstance(agent, str) else "Copilot", latest)
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
            self.session.gatherer.leave_out(_LEFT_OUT.get(kind, RECORD))
            if kind in _LEFT_OUT:
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
