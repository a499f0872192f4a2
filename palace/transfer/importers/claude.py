"""Claude's data export: conversations, projects and memories.

A conversation has its `chat_messages` in order; a project a description, instructions and
documents. The memories are Claude's summaries of you and of your projects.
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
    conversation_object,
    derived_id,
    label,
    settle_times,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import documents, list_items

SOURCE = "claude"
MESSAGES = "chat_messages"

_ROLES = {"human": "user"}
_SPOKEN = {"text", "voice_note"}
_UNSPOKEN = {
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool call",
    "tool_result": "tool result",
    "image": "image",
}
# An artifact is whole when it is made or rewritten; what changes it between is not kept.
_ARTIFACTS, _WHOLE = "artifacts", ("create", "rewrite")
ONLY_UNSPOKEN = "holds no words, only tool calls, thinking or files"


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for number, item in enumerate(list_items(part), start=1):
        yield _conversation(conversation_object(item, MESSAGES, list, number, part.name), latest)


def _recognises(head: Head) -> bool:
    return head.is_listed and MESSAGES in head.value


FORMAT = Format(
    SOURCE,
    "Claude export",
    where="In Claude: Settings → Privacy → Export data. A link comes by e-mail. "
    "Give the zip as it is, or the conversations.json in it.",
    becomes="each conversation",
    skips="reasoning, tool calls and their results, changes of artifacts, files",
    recognises=_recognises,
    members=named(r"conversations(-\d+)?\.json"),
    conversations=conversations,
)


def _conversation(raw: dict[str, Any], latest: datetime) -> Conversation:
    messages = as_list(raw.get(MESSAGES))
    known = [as_time(as_mapping(message).get("created_at")) for message in messages]
    start = as_time(raw.get("created_at")) or next((time for time in known if time), latest)
    gatherer = Gatherer()
    for index, said_at in enumerate(settle_times(known, start)):
        _add(gatherer, index, messages[index], said_at)
    transcript = Transcript(
        SOURCE, _conversation_id(raw, messages), label(raw.get("name")), gatherer.take_turns()
    )
    return gatherer.conversation(transcript)


def _conversation_id(raw: dict[str, Any], messages: list[Any]) -> str:
    first = as_mapping(messages[0]).get("uuid") if messages else None
    return as_id(raw.get("uuid")) or derived_id(raw.get("name"), raw.get("created_at"), first)


def _add(gatherer: Gatherer, index: int, message: Any, said_at: datetime) -> None:
    if not isinstance(message, dict):
        gatherer.skip(UNKNOWN_FORM)
        return
    external_id = as_id(message.get("uuid")) or str(index)
    sender = message.get("sender")
    role = _ROLES.get(sender, sender) if isinstance(sender, str) else None
    pasted = _pasted_texts(message, gatherer)
    artifacts = _artifacts(message)
    text, has_other_blocks = _words(message, gatherer)
    if text.strip() or not (pasted or has_other_blocks):
        gatherer.add(external_id, role, text, said_at)
    elif not (pasted or artifacts):
        gatherer.skip(ONLY_UNSPOKEN)
    for number, pasted_text in enumerate(pasted):
        gatherer.add(as_id(f"{external_id}/{number}"), role, pasted_text, said_at)
    for number, (content, about) in enumerate(artifacts):
        name = as_id(f"{external_id}/artifact/{number}")
        gatherer.add(name, role, content, said_at, metadata={"artifact": about})


def _words(message: dict[str, Any], gatherer: Gatherer) -> tuple[str, bool]:
    """The message's text, and whether it has other content.

    The blocks are the original; `text`, which older exports have alone, marks in newer ones the
    place of what it cannot show. Several blocks are joined by an empty line, as Claude does.
    """
    spoken, others = [], 0
    for block in as_list(message.get("content")):
        kind = str(as_mapping(block).get("type"))
        text = as_mapping(block).get("text")
        if kind in _SPOKEN and isinstance(text, str):
            spoken.append(text)
        else:
            others += 1
            if _artifact(block) is None:
                gatherer.leave_out(_UNSPOKEN.get(kind, "block of another kind"))
    for _ in as_list(message.get("files")):
        others += 1
        gatherer.leave_out("file")
    whole = message.get("text")
    if not any(text.strip() for text in spoken) and not others and isinstance(whole, str):
        return whole, False
    return "\n\n".join(text for text in spoken if text), bool(others)


def _artifacts(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(content, its title and kind) of each, as Claude shows them beside the conversation."""
    blocks = map(_artifact, as_list(message.get("content")))
    return [
        (block["content"], {key: block[key] for key in ("id", "title", "type") if block.get(key)})
        for block in blocks
        if block is not None
    ]


def _artifact(block: Any) -> dict[str, Any] | None:
    fields = as_mapping(block)
    given = as_mapping(fields.get("input"))
    is_artifact = fields.get("type") == "tool_use" and fields.get("name") == _ARTIFACTS
    content = given.get("content")
    is_whole = given.get("command") in _WHOLE and isinstance(content, str) and content.strip()
    return given if is_artifact and is_whole else None


def _pasted_texts(message: dict[str, Any], gatherer: Gatherer) -> list[str]:
    """Attachments: pasted long texts, each a turn of its own."""
    texts = []
    for attachment in as_list(message.get("attachments")):
        text = as_mapping(attachment).get("extracted_content")
        if isinstance(text, str) and text.strip():
            texts.append(text)
        else:
            gatherer.leave_out("file")
    return texts


PROJECTS = "claude-projects"
# What is written about a project itself, and in which role.
_ABOUT = (("description", "user"), ("prompt_template", "system"))


def _recognises_projects(head: Head) -> bool:
    fields = as_mapping(head.value)
    return {"uuid", "docs", "prompt_template"} <= fields.keys()


def projects(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in documents(part):
        yield _project(as_mapping(item), latest)


PROJECTS_FORMAT = Format(
    PROJECTS,
    "Claude projects",
    where="The projects.json in Claude's export, or the folder projects of newer ones. "
    "Its conversations are imported from the zip.",
    becomes="each project: its description, its instructions, and each document",
    skips="nothing",
    recognises=_recognises_projects,
    members=named(r"projects\.json|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json"),
    conversations=projects,
)


def _project(project: dict[str, Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    started = as_time(project.get("created_at")) or latest
    for key, role in _ABOUT:
        text = project.get(key)
        if isinstance(text, str) and text.strip():
            # A changed text is another message; the earlier one stays.
            gatherer.add(f"{key}/{digest(text)[:32]}", role, text, started)
    for document in map(as_mapping, as_list(project.get("docs"))):
        _add_document(gatherer, document, started)
    title = label(project.get("name"))
    name = as_id(project.get("uuid")) or derived_id(title, project.get("created_at"))
    return gatherer.conversation(Transcript(PROJECTS, name, title, gatherer.take_turns()))


def _add_document(gatherer: Gatherer, document: dict[str, Any], started: datetime) -> None:
    text, file = document.get("content"), document.get("filename")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    said_at = as_time(document.get("created_at")) or started
    kept_with = {"filename": file} if isinstance(file, str) else None
    gatherer.add(
        as_id(document.get("uuid")) or derived_id(text), "user", text, said_at, "", kept_with
    )


MEMORIES = "claude-memories"


def _recognises_memories(head: Head) -> bool:
    fields = as_mapping(head.value)
    return "conversations_memory" in fields or "project_memories" in fields


def memories(part: Part, latest: datetime) -> Iterator[Conversation]:
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
            MEMORIES,
            account or "~",
            "What Claude remembers",
            gatherer.take_turns(),
            "Claude",
        )
        yield gatherer.conversation(transcript)


MEMORIES_FORMAT = Format(
    MEMORIES,
    "Claude memories",
    where="The memories.json in Claude's export. Its conversations are imported from the zip.",
    becomes="Claude's summaries of you and of your projects",
    skips="nothing",
    recognises=_recognises_memories,
    members=named(r"memories\.json"),
    conversations=memories,
)
