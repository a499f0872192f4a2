"""Grok's data export: conversations as trees of responses; times are those of MongoDB."""

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
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader, first_character, list_items
from palace.transfer.importers.message_tree import MessageTree, TreeReader, parent_of

SOURCE = "grok"
CONVERSATIONS, MESSAGES = "conversations", "responses"
ONLY_PIECES = "holds no words, only files, pictures or searches"
_PARENT = "parent_response_id"
# What a response has beside its words: (field, what it is). A list counts as so many.
_LEFT_OUT = (
    ("thinking_trace", "thinking"),
    ("agent_thinking_traces", "thinking"),
    ("web_search_results", "search result"),
    ("file_attachments", "file"),
    ("generated_image_urls", "image"),
)


def _recognises(head: Head) -> bool:
    fields = as_mapping(head.value)
    first = next(iter(as_list(fields.get(CONVERSATIONS))), None)
    item = fields if head.is_listed else as_mapping(first)
    about = as_mapping(item.get("conversation"))
    # What is seen of a long file may end within the conversation, at a list in it.
    begins_so = not head.is_listed and {"id", "create_time"} <= about.keys()
    return "conversation" in item and (MESSAGES in item or begins_so)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in _listed(part):
        yield _read(as_mapping(item), latest)


FORMAT = Format(
    SOURCE,
    "Grok export",
    where="On accounts.x.ai/data: Download account data. Give the zip as it is, or the "
    "prod-grok-backend.json in it.",
    becomes="each conversation; every other branch is one of its own",
    skips="reasoning, searches, pictures, files; projects, tasks and posts are not read",
    recognises=_recognises,
    members=named(r"prod-grok-backend\.json"),
    conversations=conversations,
)


def _listed(part: Part) -> Iterator[Any]:
    """The conversations, whether they stand alone or beside projects, tasks and posts."""
    if first_character(part) == "[":
        yield from list_items(part)
        return
    reader = JsonReader(part)
    for key in reader.fields():
        if key == CONVERSATIONS and reader.peek() == "[":
            for _ in reader.elements():
                yield reader.value()
        else:
            reader.value()
    if reader.peek():
        reader.fail("goes on after its object has ended")


def _read(raw: dict[str, Any], latest: datetime) -> Conversation:
    about = as_mapping(raw.get("conversation"))
    messages = _by_id(raw)
    gatherer = Gatherer()

    def add(key: str, said_at: datetime) -> None:
        _add(gatherer, key, messages[key], said_at)

    def time_of(key: str) -> datetime | None:
        return _time(messages[key].get("create_time"))

    title, started = label(about.get("title")), about.get("create_time")
    name = as_id(about.get("id")) or derived_id(title, started, next(iter(messages), None))
    tree = MessageTree(_parents(messages), about.get("leaf_response_id"))
    reader = TreeReader(tree, gatherer, _time(started) or latest, time_of, add)
    return reader.conversation(SOURCE, title, lambda _: name)


def _by_id(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    messages: dict[str, dict[str, Any]] = {}
    for place, item in enumerate(as_list(raw.get(MESSAGES))):
        message = as_mapping(as_mapping(item).get("response"))
        key = as_id(message.get("_id")) or f"~{place}"
        messages[f"{key}~{place}" if key in messages else key] = message
    return messages


def _parents(messages: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    """As the export names them; early exports name none, then each follows the one before."""
    if any(parent_of(message, _PARENT) for message in messages.values()):
        return {key: parent_of(message, _PARENT) for key, message in messages.items()}
    return dict(zip(messages, [None, *messages], strict=False))


def _add(gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime) -> None:
    pieces = [what for field, what in _LEFT_OUT for _ in _counted(message.get(field))]
    for piece in pieces:
        gatherer.leave_out(piece)
    text = message.get("message")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
    elif pieces and not text.strip():
        gatherer.skip(ONLY_PIECES)
    else:
        gatherer.add(as_id(key) or "~", _role(message.get("sender")), text, said_at)


def _counted(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _role(sender: object) -> str:
    """Grok's own words have the sender assistant, or the name of the model."""
    name = str(sender).lower()
    is_grok = name in ("assistant", "model") or name.startswith("grok")
    return "assistant" if is_grok else {"human": "user"}.get(name, name)


def _time(value: Any) -> datetime | None:
    """An ISO time, or {"$date": {"$numberLong": milliseconds}}."""
    stamp = as_mapping(value).get("$date", value)
    stamp = as_mapping(stamp).get("$numberLong", stamp)
    if isinstance(stamp, str) and stamp.isascii() and stamp.isdigit() and len(stamp) < 16:
        stamp = int(stamp)
    return as_time(stamp / 1000 if isinstance(stamp, int) and stamp > 1e11 else stamp)
