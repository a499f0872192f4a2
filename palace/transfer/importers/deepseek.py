"""DeepSeek's export: conversations like ChatGPT's, whose messages are made of fragments."""

from __future__ import annotations

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
    conversation_object,
    derived_id,
    label,
)
from palace.transfer.importers.export_format import Format, Head, named
from palace.transfer.importers.files import Part
from palace.transfer.importers.json_stream import list_items
from palace.transfer.importers.message_tree import MessageTree, with_branches

SOURCE = "deepseek"
MESSAGES = "mapping"
_ROLES = {"REQUEST": "user", "RESPONSE": "assistant"}
_LEFT_OUT = {"THINK": "thinking", "SEARCH": "search"}


def _recognises(head: Head) -> bool:
    item = as_mapping(head.value)
    return head.is_listed and MESSAGES in item and "inserted_at" in item


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for number, item in enumerate(list_items(part), start=1):
        raw = conversation_object(item, MESSAGES, dict, number, part.name)
        yield _Conversation(raw, latest).read()


FORMAT = Format(
    SOURCE,
    "DeepSeek export",
    where="In DeepSeek: Settings → Data → Export data. Give the zip as it is, or the "
    "conversations.json in it.",
    becomes="each conversation; every other branch is one of its own",
    skips="reasoning, searches, files",
    recognises=_recognises,
    members=named(r"conversations(-\d+)?\.json"),
    conversations=conversations,
)


class _Conversation:
    def __init__(self, raw: dict[str, Any], latest: datetime) -> None:
        nodes = as_mapping(raw.get(MESSAGES))
        self._raw = raw
        self._messages = {key: as_mapping(node).get("message") for key, node in nodes.items()}
        parents = {key: as_mapping(node).get("parent") for key, node in nodes.items()}
        self._tree = MessageTree(
            {key: parent if isinstance(parent, str) else None for key, parent in parents.items()},
            None,
        )
        self._gatherer = Gatherer()
        self._start = as_time(raw.get("inserted_at")) or latest
        self._times: dict[str, datetime] = {}

    def read(self) -> Conversation:
        paths = self._tree.paths()
        shown = next(paths)
        title = label(self._raw.get("title"))
        own = as_id(self._raw.get("id"))
        external_id = own or derived_id(title, self._raw.get("inserted_at"))
        transcript = Transcript(SOURCE, external_id, title, self._turns_of(shown))
        return with_branches(self._gatherer, transcript, map(self._turns_of, paths))

    def _turns_of(self, path: list[str]) -> tuple[Turn, ...]:
        for key in path:
            message = self._messages[key]
            before = self._times.get(self._tree.parent(key) or "", self._start)
            self._times[key] = as_time(as_mapping(message).get("inserted_at")) or before
            if message is not None:
                self._add(key, as_mapping(message))
        return self._gatherer.take_turns()

    def _add(self, key: str, message: dict[str, Any]) -> None:
        gatherer = self._gatherer
        for _ in as_list(message.get("files")):
            gatherer.leave_out("file")
        is_known = False
        for number, fragment in enumerate(map(as_mapping, as_list(message.get("fragments")))):
            kind, text = str(fragment.get("type")), fragment.get("content")
            if kind in _ROLES and isinstance(text, str):
                is_known = True
                name = as_id(f"{key}/{number}" if number else key) or "~"
                gatherer.add(name, _ROLES[kind], text, self._times[key])
            else:
                gatherer.leave_out(_LEFT_OUT.get(kind, "fragment of another kind"))
        if not is_known:
            gatherer.skip(UNKNOWN_FORM)
