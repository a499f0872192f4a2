"""LibreChat's export of a conversation: an object with its messages, as a list or as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

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
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import documents
from palace.transfer.importers.message_tree import MessageTree, TreeReader

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
        yield _read(as_mapping(item), latest)


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


def _read(raw: dict[str, Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    messages: dict[str, dict[str, Any]] = {}
    parents: dict[str, str | None] = {}
    for parent, message in _all_messages(raw):
        key = as_id(message.get("messageId")) or f"~{len(messages)}"
        if key in messages:
            gatherer.skip(REPEATED)
            continue
        messages[key] = message
        parents[key] = as_id(message.get("parentMessageId")) or parent

    def time_of(key: str) -> datetime | None:
        return as_time(messages[key].get("createdAt"))

    start = min(filter(None, map(time_of, messages)), default=latest)
    title = label(raw.get("title"))
    own = as_id(raw.get("conversationId"))
    name = own or derived_id(title, next(iter(messages), None))
    tree = MessageTree(parents, None)
    reader = TreeReader(
        tree, gatherer, start, time_of, lambda key, at: _add(gatherer, key, messages[key], at)
    )
    return reader.conversation(SOURCE, title, lambda _: name)


def _add(gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime) -> None:
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
        gatherer.add(key, role, text, said_at)


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
