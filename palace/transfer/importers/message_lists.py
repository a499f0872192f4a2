"""Conversations as plain lists of messages, in JSON or JSON Lines, and mem0's lists of memories.

The plain format is our own, for all other sources (docs/importing.md). Datasets for training have
ShareGPT's form, `from` and `value`, or messages as OpenAI's API takes them: `{"messages": [{"role",
"content"}]}`, or the list alone.

A memory of mem0 is filed as a message of yours, so that facts are read from it; where it came from
is beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Never

from language.errors import BadImport
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
from palace.transfer.importers.json_stream import JsonReader, documents, first_character, line_items

PLAIN_SOURCE = "plain"


def plain_conversations(
    part: Part, latest: datetime, *, source: str = PLAIN_SOURCE
) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for number, line in line_items(part):
        yield _Line(part.name, number, source).read(line, latest)


def _is_plain(head: Head) -> bool:
    return isinstance(head.value, dict) and not head.is_listed and "messages" in head.value


PLAIN_FORMAT = Format(
    PLAIN_SOURCE,
    "plain JSON Lines",
    where="For everything else: a text file with one conversation a line, written as below.",
    becomes="each line",
    skips="roles that are not user, assistant, system or tool",
    recognises=_is_plain,
    members=named(r".+\.jsonl"),
    conversations=plain_conversations,
)


class _Line:
    """Reads one line strictly, because programs write this format, and errors should be noticed."""

    def __init__(self, name: str, number: int, source: str) -> None:
        self._source = source
        self._where = f"Line {number} of {name}"

    def read(self, line: Any, latest: datetime) -> Conversation:
        if not isinstance(line, dict):
            self._fail('is not an object like {"id": …, "messages": […]}')
        external_id = as_id(line.get("id"))
        if not external_id:
            self._fail('has no "id", a text that names the conversation')
        messages = line.get("messages")
        if not isinstance(messages, list):
            self._fail('has no list of "messages"')
        gatherer = Gatherer()
        times = [self._time(index, message) for index, message in enumerate(messages)]
        start = next((time for time in times if time), latest)
        for index, said_at in enumerate(settle_times(times, start)):
            self._add(gatherer, index, messages[index], said_at)
        transcript = Transcript(
            self._source,
            external_id,
            label(line.get("title")),
            gatherer.take_turns(),
            label(line.get("agent")),
        )
        return gatherer.conversation(transcript)

    def _time(self, index: int, message: Any) -> datetime | None:
        if not isinstance(message, dict):
            self._fail(f'has a message that is not an object like {{"role": …}} (number {index})')
        said_at = message.get("said_at")
        time = as_time(said_at)
        if said_at is not None and time is None:
            self._fail(
                f"has a message (number {index}) whose said_at is no ISO 8601 time "
                "such as 2025-03-09T18:30:00Z"
            )
        return time

    def _add(
        self, gatherer: Gatherer, index: int, message: dict[str, Any], said_at: datetime
    ) -> None:
        text = message.get("text")
        if not isinstance(text, str):
            self._fail(f'has a message (number {index}) without a "text"')
        external_id = as_id(message.get("id")) or str(index)
        gatherer.add(external_id, message.get("role"), text, said_at, message.get("speaker"))

    def _fail(self, what: str) -> Never:
        raise BadImport(f"{self._where} {what}; nothing was imported.")


SHAREGPT_SOURCE = "sharegpt"
_MESSAGES = ("conversations", "items")
_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "assistant", "model"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function_call", "function_response"), "tool"),
    "system": "system",
}


def _is_sharegpt(head: Head) -> bool:
    first = next(iter(_messages(as_mapping(head.value))), None)
    return "from" in as_mapping(first) and "value" in as_mapping(first)


def sharegpt_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """The format has no times: `latest` is that of all."""
    for item in documents(part):
        yield _read(as_mapping(item), latest)


SHAREGPT_FORMAT = Format(
    SHAREGPT_SOURCE,
    "ShareGPT",
    where='A file with {"conversations": [{"from": "human", "value": …}]}: one, a list of them, or '
    "one a line.",
    becomes="each list of messages",
    skips="speakers that are neither people, models nor tools",
    recognises=_is_sharegpt,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=sharegpt_conversations,
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
    return gatherer.conversation(
        Transcript(SHAREGPT_SOURCE, external_id, title, gatherer.take_turns())
    )


OPENAI_SOURCE = "openai"
ONLY_PIECES = "holds no words, only tool calls, images or files"
_OPENAI_ROLES = {"developer": "system", "function": "tool"}
_TEXTS = {"text", "input_text", "output_text"}
_PIECES = {"image_url": "image", "input_image": "image", "input_audio": "sound"}
_TIMES = ("created_at", "timestamp", "create_time", "created")


def _is_openai(head: Head) -> bool:
    item = as_mapping(head.value)
    return _is_message(item) if "messages" not in item else _has_messages(item)


def _has_messages(item: dict[str, Any]) -> bool:
    first = next(iter(as_list(item.get("messages"))), None)
    return _is_message(as_mapping(first))


def _is_message(fields: dict[str, Any]) -> bool:
    return isinstance(fields.get("role"), str) and "content" in fields


def openai_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
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


OPENAI_FORMAT = Format(
    OPENAI_SOURCE,
    "OpenAI messages",
    where='A file with {"messages": [{"role": …, "content": …}]}: one, a list of them, or one a '
    "line; or a list of messages.",
    becomes="each list of messages",
    skips="tool calls, images, sound",
    recognises=_is_openai,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=openai_conversations,
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
    return gatherer.conversation(
        Transcript(OPENAI_SOURCE, external_id, title, gatherer.take_turns())
    )


def _time(fields: dict[str, Any]) -> datetime | None:
    return next(filter(None, (as_time(fields.get(key)) for key in _TIMES)), None)


def _add(gatherer: Gatherer, place: int, message: dict[str, Any], said_at: datetime) -> None:
    role = message.get("role")
    role = _OPENAI_ROLES.get(role, role) if isinstance(role, str) else None
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


MEM0_SOURCE = "mem0"
# Memories of one person that are filed as one conversation.
_TOGETHER = 500
_SCOPES = ("user_id", "agent_id", "app_id", "run_id")
_BESIDE = ("metadata", "categories", *_SCOPES)


def _is_memory(value: Any) -> bool:
    fields = as_mapping(value)
    return isinstance(fields.get("memory"), str) and "id" in fields


def _recognises_mem0(head: Head) -> bool:
    if head.is_listed:
        return _is_memory(head.value)
    fields = as_mapping(head.value)
    first = next(iter(as_list(fields.get("results"))), None)
    return _is_memory(first) or _is_memory(fields)


def conversations_of_mem0(part: Part, latest: datetime) -> Iterator[Conversation]:
    """The memories, those of each person apart; `latest` replaces missing times."""
    gathered: dict[str, Gatherer] = {}
    for memory in map(as_mapping, _listed_memories(part)):
        scope = next(filter(None, (as_id(memory.get(key)) for key in _SCOPES)), "")
        gatherer = gathered.setdefault(scope, Gatherer())
        _add_memory(gatherer, memory, latest)
        if len(gatherer.turns) >= _TOGETHER:
            yield _memories_of(scope, gathered.pop(scope))
    for scope, gatherer in gathered.items():
        yield _memories_of(scope, gatherer)


def _listed_memories(part: Part) -> Iterator[Any]:
    """A list, lines, or what the API answers: an object with a list of results."""
    if first_character(part) == "[":
        yield from documents(part)
        return
    reader = JsonReader(part)
    while reader.peek():
        alone: dict[str, Any] = {}
        for key in reader.fields():
            if key == "results" and reader.peek() == "[":
                for _ in reader.elements():
                    yield reader.value()
            else:
                alone[key] = reader.value()
        if "memory" in alone:
            yield alone


def _memories_of(scope: str, gatherer: Gatherer) -> Conversation:
    title = f"Memories of {scope} in mem0" if scope else "Memories in mem0"
    transcript = Transcript(MEM0_SOURCE, as_id(scope) or "~", label(title), gatherer.take_turns())
    return gatherer.conversation(transcript)


def _add_memory(gatherer: Gatherer, memory: dict[str, Any], latest: datetime) -> None:
    text = memory.get("memory")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    said_at = as_time(memory.get("created_at")) or latest
    kept_with = {key: memory[key] for key in _BESIDE if memory.get(key)}
    beside = {"mem0": kept_with} if kept_with else None
    name = as_id(memory.get("id")) or derived_id(text)
    gatherer.add(name, "user", text, said_at, metadata=beside)


MEM0_FORMAT = Format(
    MEM0_SOURCE,
    "mem0 memories",
    where="What mem0's get_all() returns, as JSON: a list, or an object with results.",
    becomes="the memories of each person",
    skips="records without a memory",
    recognises=_recognises_mem0,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=conversations_of_mem0,
)
