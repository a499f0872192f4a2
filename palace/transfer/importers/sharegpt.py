"""ShareGPT's form, in which conversations for training are published: `from` and `value`."""

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
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import documents

SOURCE = "sharegpt"
_MESSAGES = ("conversations", "items")
_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "assistant", "model"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function_call", "function_response"), "tool"),
    "system": "system",
}


def _recognises(head: Head) -> bool:
    first = next(iter(_messages(as_mapping(head.value))), None)
    return "from" in as_mapping(first) and "value" in as_mapping(first)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """The format has no times: `latest` is that of all."""
    for item in documents(part):
        yield _read(as_mapping(item), latest)


FORMAT = Format(
    SOURCE,
    "ShareGPT",
    where='A file with {"conversations": [{"from": "human", "value": …}]}: one, a list of them, or '
    "one a line.",
    becomes="each list of messages",
    skips="speakers that are neither people, models nor tools",
    recognises=_recognises,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=conversations,
)


def _messages(item: dict[str, Any]) -> list[Any]:
    return next(filter(None, (as_list(item.get(key)) for key in _MESSAGES)), [])


def _read(item: dict[str, Any], latest: datetime) -> Conversation:
    messages, gatherer = _messages(item), Gatherer()
    instructions = item.get("system")
    if isinstance(instructions, str) and instructions.strip():
        gatherer.add("system", "system", instructions, latest)
    for place, message in enumerate(map(as_mapping, messages)):
        text, speaker = message.get("value"), message.get("from")
        if isinstance(text, str):
            name = as_id(message.get("id")) or str(place)
            gatherer.add(name, _ROLES.get(str(speaker).lower()), text, latest)
        else:
            gatherer.skip(UNKNOWN_FORM)
    # Without an id, two lists are one conversation only if they are the same.
    external_id = as_id(item.get("id")) or derived_id(json.dumps(messages))
    title = label(item.get("title"))
    return gatherer.conversation(Transcript(SOURCE, external_id, title, gatherer.take_turns()))
