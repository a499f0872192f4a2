"""Open WebUI's export: a list of chats, each a tree of messages called `history`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

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
from palace.transfer.importers.json_stream import documents
from palace.transfer.importers.message_tree import MessageTree, TreeReader, parent_of

SOURCE = "open-webui"
ONLY_DETAILS = "holds no words, only reasoning, tool calls or files"
# Open WebUI writes these into the answer, folded.
_FOLDED = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"')
_LEFT_OUT = {"reasoning": "thinking", "tool_calls": "tool call", "code_interpreter": "tool call"}
_END = "</details>"


def _recognises(head: Head) -> bool:
    chat = as_mapping(as_mapping(head.value).get("chat"))
    return any(key in chat for key in ("history", "messages", "models"))


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in documents(part):
        yield _read(as_mapping(item), latest)


FORMAT = Format(
    SOURCE,
    "Open WebUI export",
    where="In Open WebUI: Settings → Data controls → Export chats; or of one chat, in its menu: "
    "Download → Export chat (.json).",
    becomes="each chat; every other branch is one of its own",
    skips="reasoning, tool calls, images, files",
    recognises=_recognises,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=conversations,
)


def _read(raw: dict[str, Any], latest: datetime) -> Conversation:
    chat = as_mapping(raw.get("chat"))
    history = as_mapping(chat.get("history"))
    messages = as_mapping(history.get("messages")) or _in_a_row(chat)
    gatherer = Gatherer()

    def add(key: str, said_at: datetime) -> None:
        _add(gatherer, key, as_mapping(messages[key]), said_at)

    known = filter(None, map(_time, messages.values()))
    start = as_time(raw.get("created_at")) or _time(chat) or min(known, default=latest)
    title = label(chat.get("title")) or label(raw.get("title"))
    own = as_id(raw.get("id")) or as_id(chat.get("id"))
    name = own or derived_id(title, next(iter(messages), None))
    parents = {key: parent_of(message, "parentId") for key, message in messages.items()}
    tree = MessageTree(parents, history.get("currentId"))
    reader = TreeReader(tree, gatherer, start, lambda key: _time(messages[key]), add)
    return reader.conversation(SOURCE, title, lambda _: name)


def _add(gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime) -> None:
    text = message.get("content")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    for file in as_list(message.get("files")):
        gatherer.leave_out("image" if as_mapping(file).get("type") == "image" else "file")
    spoken = _without_folded(text, gatherer)
    if not spoken.strip() and (text.strip() or message.get("files")):
        gatherer.skip(ONLY_DETAILS)
    else:
        gatherer.add(as_id(key) or "~", message.get("role"), spoken, said_at)


def _in_a_row(chat: dict[str, Any]) -> dict[str, Any]:
    """The messages of the first versions: a list without branches."""
    listed = enumerate(map(as_mapping, as_list(chat.get("messages"))))
    messages = {as_id(message.get("id")) or str(place): message for place, message in listed}
    before = [None, *messages]
    return {
        key: {"parentId": parent, **message}
        for parent, (key, message) in zip(before, messages.items(), strict=False)
    }


def _time(message: Any) -> datetime | None:
    """Seconds; chats themselves have milliseconds."""
    stamp = as_mapping(message).get("timestamp")
    is_in_ms = isinstance(stamp, int | float) and stamp > 1e11
    return as_time(stamp / 1000 if is_in_ms and stamp is not None else stamp)


def _without_folded(text: str, gatherer: Gatherer) -> str:
    """The text without reasoning and tool calls; the rest to the byte."""
    pieces, at = [], 0
    for found in _FOLDED.finditer(text):
        end = text.find(_END, found.end()) if found.start() >= at else -1
        if end < 0:
            continue
        gatherer.leave_out(_LEFT_OUT[found[1]])
        pieces.append(text[at : found.start()])
        at = end + len(_END)
        at += text.startswith("\n", at)
    pieces.append(text[at:])
    return "".join(pieces)
