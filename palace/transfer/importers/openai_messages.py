"""Messages as OpenAI's API takes them: `{"messages": [{"role", "content"}]}`, or the list alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from language.transcripts import Transcript
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
    settle_times,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import documents

SOURCE = "openai"
ONLY_PIECES = "holds no words, only tool calls, images or files"
_ROLES = {"developer": "system", "function": "tool"}
_TEXTS = {"text", "input_text", "output_text"}
_PIECES = {"image_url": "image", "input_image": "image", "input_audio": "sound"}
_TIMES = ("created_at", "timestamp", "create_time", "created")


def _recognises(head: Head) -> bool:
    item = as_mapping(head.value)
    return _is_message(item) if "messages" not in item else _has_messages(item)


def _has_messages(item: dict[str, Any]) -> bool:
    first = next(iter(as_list(item.get("messages"))), None)
    return _is_message(as_mapping(first))


def _is_message(fields: dict[str, Any]) -> bool:
    return isinstance(fields.get("role"), str) and "content" in fields


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    alone: list[Any] = []
    for item in documents(part):
        fields = as_mapping(item)
        if "messages" in fields or not _is_message(fields):
            yield _conversation(fields, as_list(fields.get("messages")), latest)
        else:
            alone.append(item)
    if alone:
        yield _conversation({}, alone, latest)


FORMAT = Format(
    SOURCE,
    "OpenAI messages",
    where='A file with {"messages": [{"role": …, "content": …}]}: one, a list of them, or one a '
    "line; or a list of messages.",
    becomes="each list of messages",
    skips="tool calls, images, sound",
    recognises=_recognises,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=conversations,
)


def _conversation(item: dict[str, Any], messages: list[Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    known = [_time(as_mapping(message)) for message in messages]
    start = _time(item) or next((time for time in known if time), latest)
    for place, said_at in enumerate(settle_times(known, start)):
        _add(gatherer, place, as_mapping(messages[place]), said_at)
    own = next(filter(None, (as_id(item.get(key)) for key in ("id", "conversation_id"))), "")
    # Without an id, two lists are one conversation only if they are the same.
    external_id = own or derived_id(json.dumps(messages))
    title = label(item.get("title"))
    return gatherer.conversation(Transcript(SOURCE, external_id, title, gatherer.take_turns()))


def _time(fields: dict[str, Any]) -> datetime | None:
    return next(filter(None, (as_time(fields.get(key)) for key in _TIMES)), None)


def _add(gatherer: Gatherer, place: int, message: dict[str, Any], said_at: datetime) -> None:
    role = message.get("role")
    role = _ROLES.get(role, role) if isinstance(role, str) else None
    calls = as_list(message.get("tool_calls"))
    for _ in calls:
        gatherer.leave_out("tool call")
    text, has_others = _words(message.get("content"), gatherer)
    if text is None and not calls:
        gatherer.skip(UNKNOWN_FORM)
    elif not (text or "").strip() and (has_others or calls):
        gatherer.skip(ONLY_PIECES)
    else:
        name = as_id(message.get("id")) or str(place)
        speaker = message.get("name") if role == "user" else ""
        gatherer.add(name, role, text or "", said_at, speaker)


def _words(content: Any, gatherer: Gatherer) -> tuple[str | None, bool]:
    """The text, and whether there are other pieces; parts are joined by an empty line."""
    if isinstance(content, str):
        return content, False
    texts, has_others = [], False
    for piece in map(as_mapping, as_list(content)):
        if str(piece.get("type")) in _TEXTS and isinstance(piece.get("text"), str):
            texts.append(piece["text"])
        else:
            has_others = True
            gatherer.leave_out(_PIECES.get(str(piece.get("type")), "piece of another kind"))
    return ("\n\n".join(texts) if isinstance(content, list) else None), has_others
