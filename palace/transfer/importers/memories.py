"""What other programs remember about you: mem0's memories, and those in Claude's export.

A memory is a message of yours, so that facts are read from it; where it came from is beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from language.storable import digest
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
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader, documents, first_character

MEM0, CLAUDE = "mem0", "claude-memories"
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


def _recognises_claudes(head: Head) -> bool:
    fields = as_mapping(head.value)
    return "conversations_memory" in fields or "project_memories" in fields


def conversations_of_mem0(part: Part, latest: datetime) -> Iterator[Conversation]:
    """The memories, those of each person apart; `latest` replaces missing times."""
    gathered: dict[str, Gatherer] = {}
    for memory in map(as_mapping, _listed(part)):
        scope = next(filter(None, (as_id(memory.get(key)) for key in _SCOPES)), "")
        gatherer = gathered.setdefault(scope, Gatherer())
        _add(gatherer, memory, latest)
        if len(gatherer.turns) >= _TOGETHER:
            yield _of(scope, gathered.pop(scope))
    for scope, gatherer in gathered.items():
        yield _of(scope, gatherer)


def _listed(part: Part) -> Iterator[Any]:
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


def _of(scope: str, gatherer: Gatherer) -> Conversation:
    title = f"Memories of {scope} in mem0" if scope else "Memories in mem0"
    transcript = Transcript(MEM0, as_id(scope) or "~", label(title), gatherer.take_turns())
    return gatherer.conversation(transcript)


def _add(gatherer: Gatherer, memory: dict[str, Any], latest: datetime) -> None:
    text = memory.get("memory")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    said_at = as_time(memory.get("created_at")) or latest
    kept_with = {key: memory[key] for key in _BESIDE if memory.get(key)}
    beside = {"mem0": kept_with} if kept_with else None
    name = as_id(memory.get("id")) or derived_id(text)
    gatherer.add(name, "user", text, said_at, metadata=beside)


def conversations_of_claude(part: Part, latest: datetime) -> Iterator[Conversation]:
    """Claude's summary of you, and one of each project; the export has no times."""
    for item in map(as_mapping, documents(part)):
        gatherer = Gatherer()
        account = as_id(item.get("account_uuid"))
        projects = as_mapping(item.get("project_memories"))
        for name, text in [("you", item.get("conversations_memory")), *projects.items()]:
            if isinstance(text, str):
                # A changed summary is another message; the earlier one stays.
                key = as_id(f"{name}/{digest(text)[:32]}")
                gatherer.add(key, "assistant", text, latest)
            elif text is not None:
                gatherer.skip(UNKNOWN_FORM)
        transcript = Transcript(
            CLAUDE, account or "~", "What Claude remembers", gatherer.take_turns(), "Claude"
        )
        yield gatherer.conversation(transcript)


MEM0_FORMAT = Format(
    MEM0,
    "mem0 memories",
    where="What mem0's get_all() returns, as JSON: a list, or an object with results.",
    becomes="the memories of each person",
    skips="records without a memory",
    recognises=_recognises_mem0,
    members=named(r".+\.jsonl?"),
    is_loose=True,
    conversations=conversations_of_mem0,
)
CLAUDE_FORMAT = Format(
    CLAUDE,
    "Claude memories",
    where="The memories.json in Claude's export. Its conversations are imported from the zip.",
    becomes="Claude's summaries of you and of your projects",
    skips="nothing",
    recognises=_recognises_claudes,
    members=named(r"memories\.json"),
    conversations=conversations_of_claude,
)
