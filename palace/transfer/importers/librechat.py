"""LibreChat's export of a conversation: an object with its messages, as a list or as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from language.transcripts import Transcript, Turn
from palace.transfer.importers.conversation import (
    REPEATED,
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
from palace.transfer.importers.export_format import Format, Head, named
from palace.transfer.importers.files import Part
from palace.transfer.importers.json_stream import documents
from palace.transfer.importers.message_tree import MessageTree, with_branches

SOURCE = "librechat"
FAILED = "is an error, not an answer"
ONLY_PIECES = "holds no words, only reasoning, tool calls or files"
_LEFT_OUT = {"think": "thinking", "tool_call": "tool call", "image_file": "image"}


def _recognises(head: Head) -> bool:
    item = as_mapping(head.value)
    return "conversationId" in item and any(
        key in item for key in ("messages", "messagesTree", "exportAt", "endpoint")
    )


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in documents(part):
        yield _Exported(as_mapping(item), latest).read()


FORMAT = Format(
    SOURCE,
    "LibreChat export",
    where="In LibreChat, in the menu of a conversation: Export, as JSON, with all branches if you "
    "want them. Give the file, or a zip of several.",
    becomes="each conversation; every other branch is one of its own",
    skips="errors, reasoning, tool calls, images, files",
    recognises=_recognises,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=conversations,
)


class _Exported:
    def __init__(self, raw: dict[str, Any], latest: datetime) -> None:
        self._raw = raw
        self._gatherer = Gatherer()
        self._messages: dict[str, dict[str, Any]] = {}
        parents: dict[str, str | None] = {}
        for parent, message in _all_messages(raw):
            key = as_id(message.get("messageId")) or f"~{len(self._messages)}"
            if key in self._messages:
                self._gatherer.skip(REPEATED)
                continue
            self._messages[key] = message
            parents[key] = as_id(message.get("parentMessageId")) or parent
        self._tree = MessageTree(parents, None)
        known = [as_time(each.get("createdAt")) for each in self._messages.values()]
        self._start = min((time for time in known if time), default=latest)
        self._times: dict[str, datetime] = {}

    def read(self) -> Conversation:
        paths = self._tree.paths()
        shown = next(paths)
        title = label(self._raw.get("title"))
        own = as_id(self._raw.get("conversationId"))
        external_id = own or derived_id(title, next(iter(self._messages), None))
        transcript = Transcript(SOURCE, external_id, title, self._turns_of(shown))
        return with_branches(self._gatherer, transcript, map(self._turns_of, paths))

    def _turns_of(self, path: list[str]) -> tuple[Turn, ...]:
        for key in path:
            message = self._messages[key]
            before = self._times.get(self._tree.parent(key) or "", self._start)
            self._times[key] = as_time(message.get("createdAt")) or before
            self._add(key, message)
        return self._gatherer.take_turns()

    def _add(self, key: str, message: dict[str, Any]) -> None:
        gatherer = self._gatherer
        for _ in as_list(message.get("files")):
            gatherer.leave_out("file")
        text, has_others = _words(message, gatherer)
        if message.get("error") is True:
            gatherer.skip(FAILED)
        elif text is None:
            gatherer.skip(UNKNOWN_FORM)
        elif not text.strip() and (has_others or message.get("files")):
            gatherer.skip(ONLY_PIECES)
        else:
            role = "user" if message.get("isCreatedByUser") is True else "assistant"
            gatherer.add(key, role, text, self._times[key])


def _all_messages(raw: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """(id of the parent, message) of each, whether they are listed or nested as children."""
    tree = raw.get("messagesTree")
    listed = as_list(raw.get("messages")) or (tree if isinstance(tree, list) else [tree])
    waiting: list[tuple[str | None, Any]] = [(None, each) for each in reversed(listed)]
    while waiting:
        parent, message = waiting.pop()
        if isinstance(message, dict):
            yield parent, message
            own = as_id(message.get("messageId")) or None
            waiting += [(own, child) for child in reversed(as_list(message.get("children")))]


def _words(message: dict[str, Any], gatherer: Gatherer) -> tuple[str | None, bool]:
    """The text, and whether there are other pieces."""
    pieces = as_list(message.get("content"))
    texts, has_others = [], False
    for piece in map(as_mapping, pieces):
        text = piece.get("text")
        # Assistants have it within an object.
        text = as_mapping(text).get("value") if isinstance(text, dict) else text
        if piece.get("type") == "text" and isinstance(text, str):
            texts.append(text)
        else:
            has_others = True
            gatherer.leave_out(_LEFT_OUT.get(str(piece.get("type")), "piece of another kind"))
    whole = message.get("text")
    if texts or not isinstance(whole, str):
        return ("\n\n".join(texts) if pieces else None), has_others
    return whole, has_others
