"""Perplexity: the account's data, and threads as exporters of others save them.

Both have entries, each a question and its answer. In the account's data, which come on request, a
file has all threads. Exporters save what the site itself loads: a thread a file.
"""

from __future__ import annotations

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
    conversation_object,
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader

SOURCE = "perplexity"
_ENTRIES = "entries"
_ANSWER = "ask_text"
# Of an entry, one of which comes before its first list.
_MARKS = {"query", "query_str", "backend_uuid"}
# What an answer has beside its text.
_LEFT_OUT = {
    "sources_answer_mode": "search",
    "web_results": "search",
    "pro_search_steps": "search",
    "plan": "thinking",
    "reasoning_plan": "thinking",
    "image_answer_mode": "image",
    "media_items": "image",
    "video_answer_mode": "video",
}


def _recognises(head: Head) -> bool:
    """An object, not a list: the first list in it is of threads, or of entries."""
    fields = as_mapping(head.value)
    first = next(iter(as_list(fields.get("conversations"))), None)
    return not head.is_listed and (_is_thread(first) or _is_thread(fields))


def _is_thread(value: Any) -> bool:
    fields = as_mapping(value)
    entry = as_mapping(next(iter(as_list(fields.get(_ENTRIES))), None))
    return "context_title" in fields or bool(_MARKS & entry.keys())


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    reader, alone, number = JsonReader(part), {}, 0
    for key in reader.fields():
        if key == "conversations" and reader.peek() == "[":
            for number, _ in enumerate(reader.elements(), start=1):
                yield _thread(reader.value(), number, part.name, latest)
        else:
            alone[key] = reader.value()
    if reader.peek():
        reader.fail("goes on after its object has ended")
    if _ENTRIES in alone:
        yield _thread(alone, number + 1, part.name, latest)


FORMAT = Format(
    SOURCE,
    "Perplexity data",
    where="Ask Perplexity for your account's data, and give the JSON file with conversations; or "
    "the JSON files of an exporter such as perplexport, or a zip of them.",
    becomes="each thread",
    skips="searches, sources, plans, images, videos",
    recognises=_recognises,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=conversations,
)


def _thread(item: Any, number: int, name: str, latest: datetime) -> Conversation:
    raw = conversation_object(item, _ENTRIES, list, number, name)
    entries = list(map(as_mapping, as_list(raw.get(_ENTRIES))))
    first = entries[0] if entries else {}
    title = raw.get("context_title") or first.get("thread_title")
    said_at = as_time(raw.get("created_at")) or latest
    gatherer = Gatherer()
    for place, entry in enumerate(entries):
        said_at = _time_of(entry) or said_at
        _add(gatherer, as_id(entry.get("uuid")) or str(place), entry, said_at)
    given = (raw.get("context_uuid"), first.get("context_uuid"), raw.get("uuid"))
    key = next(filter(None, map(as_id, given)), "") or derived_id(
        label(title), raw.get("created_at"), _question(first)
    )
    turns = gatherer.take_turns()
    return gatherer.conversation(Transcript(SOURCE, key, label(title), turns, "Perplexity"))


def _add(gatherer: Gatherer, name: str, entry: dict[str, Any], said_at: datetime) -> None:
    for role, text in (("user", _question(entry)), ("assistant", _answer(gatherer, entry))):
        if isinstance(text, str):
            gatherer.add(as_id(f"{name}/{role}"), role, text, said_at)
        else:
            gatherer.skip(UNKNOWN_FORM)


def _question(entry: dict[str, Any]) -> Any:
    return entry.get("query", entry.get("query_str"))


def _answer(gatherer: Gatherer, entry: dict[str, Any]) -> Any:
    if "blocks" not in entry:
        return entry.get("answer")
    answer = None
    for block in map(as_mapping, as_list(entry["blocks"])):
        kind = str(block.get("intended_usage"))
        if kind == _ANSWER:
            answer = as_mapping(block.get("markdown_block")).get("answer")
        else:
            gatherer.leave_out(_LEFT_OUT.get(kind, "block of another kind"))
    return answer


def _time_of(entry: dict[str, Any]) -> datetime | None:
    names = ("created_at", "entry_created_datetime", "entry_updated_datetime", "updated_datetime")
    return next(filter(None, (as_time(entry.get(name)) for name in names)), None)
