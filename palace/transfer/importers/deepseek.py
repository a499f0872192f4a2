"""DeepSeek's export: conversations like ChatGPT's, whose messages are made of fragments."""

from __future__ import annotations

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
    conversation_object,
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import list_items
from palace.transfer.importers.message_tree import MessageTree, TreeReader, parent_of

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
        yield _read(raw, latest)


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


def _read(raw: dict[str, Any], latest: datetime) -> Conversation:
    nodes = as_mapping(raw.get(MESSAGES))
    messages = {key: as_mapping(node).get("message") for key, node in nodes.items()}
    parents = {key: parent_of(node) for key, node in nodes.items()}
    gatherer = Gatherer()

    def add(key: str, said_at: datetime) -> None:
        if messages[key] is not None:
            _add(gatherer, key, as_mapping(messages[key]), said_at)

    def time_of(key: str) -> datetime | None:
        return as_time(as_mapping(messages[key]).get("inserted_at"))

    started = raw.get("inserted_at")
    title = label(raw.get("title"))
    name = as_id(raw.get("id")) or derived_id(title, started)
    tree = MessageTree(parents, None)
    reader = TreeReader(tree, gatherer, as_time(started) or latest, time_of, add)
    return reader.conversation(SOURCE, title, lambda _: name)


def _add(gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime) -> None:
    for _ in as_list(message.get("files")):
        gatherer.leave_out("file")
    is_known = False
    for number, fragment in enumerate(map(as_mapping, as_list(message.get("fragments")))):
        kind, text = str(fragment.get("type")), fragment.get("content")
        if kind in _ROLES and isinstance(text, str):
            is_known = True
            name = as_id(f"{key}/{number}" if number else key) or "~"
            gatherer.add(name, _ROLES[kind], text, said_at)
        else:
            gatherer.leave_out(_LEFT_OUT.get(kind, "fragment of another kind"))
    if not is_known:
        gatherer.skip(UNKNOWN_FORM)
