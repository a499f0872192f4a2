"""Open WebUI's export: a list of chats, each a tree of messages called `history`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from language.transcripts import Transcript, Turn
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
from palace.transfer.importers.export_format import Format, Head, named
from palace.transfer.importers.files import Part
from palace.transfer.importers.json_stream import documents
from palace.transfer.importers.message_tree import MessageTree, with_branches

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
        yield _Chat(as_mapping(item), latest).read()


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


class _Chat:
    def __init__(self, raw: dict[str, Any], latest: datetime) -> None:
        self._raw = raw
        self._chat = as_mapping(raw.get("chat"))
        self._gatherer = Gatherer()
        history = as_mapping(self._chat.get("history"))
        self._messages = as_mapping(history.get("messages")) or _in_a_row(self._chat)
        parents = {key: _parent(message) for key, message in self._messages.items()}
        self._tree = MessageTree(parents, history.get("currentId"))
        known = [_time(message) for message in self._messages.values()]
        created = as_time(raw.get("created_at")) or _time(self._chat)
        self._start = created or min((time for time in known if time), default=latest)
        self._times: dict[str, datetime] = {}

    def read(self) -> Conversation:
        paths = self._tree.paths()
        shown = next(paths)
        own = as_id(self._raw.get("id")) or as_id(self._chat.get("id"))
        title = label(self._chat.get("title")) or label(self._raw.get("title"))
        external_id = own or derived_id(title, next(iter(self._messages), None))
        transcript = Transcript(SOURCE, external_id, title, self._turns_of(shown))
        return with_branches(self._gatherer, transcript, map(self._turns_of, paths))

    def _turns_of(self, path: list[str]) -> tuple[Turn, ...]:
        for key in path:
            before = self._times.get(self._tree.parent(key) or "", self._start)
            self._times[key] = _time(self._messages[key]) or before
            self._add(key, self._messages[key])
        return self._gatherer.take_turns()

    def _add(self, key: str, message: Any) -> None:
        gatherer, fields = self._gatherer, as_mapping(message)
        text = fields.get("content")
        if not isinstance(text, str):
            gatherer.skip(UNKNOWN_FORM)
            return
        for file in as_list(fields.get("files")):
            gatherer.leave_out("image" if as_mapping(file).get("type") == "image" else "file")
        spoken = _without_folded(text, gatherer)
        if not spoken.strip() and (text.strip() or fields.get("files")):
            gatherer.skip(ONLY_DETAILS)
        else:
            gatherer.add(as_id(key) or "~", fields.get("role"), spoken, self._times[key])


def _in_a_row(chat: dict[str, Any]) -> dict[str, Any]:
    """The messages of the first versions: a list without branches."""
    listed = enumerate(map(as_mapping, as_list(chat.get("messages"))))
    messages = {as_id(message.get("id")) or str(place): message for place, message in listed}
    before = [None, *messages]
    return {
        key: {"parentId": parent, **message}
        for parent, (key, message) in zip(before, messages.items(), strict=False)
    }


def _parent(message: Any) -> str | None:
    parent = as_mapping(message).get("parentId")
    return parent if isinstance(parent, str) else None


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
