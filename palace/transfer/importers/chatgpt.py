"""ChatGPT's data export: a list of conversations, each a tree of messages called `mapping`.

`current_node` is the last message that ChatGPT shows. DeepSeek's export has the same form, with
messages made of fragments.
"""

from __future__ import annotations

import json
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
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import list_items
from palace.transfer.importers.message_forms import MessageTree, TreeReader, parent_of

CHATGPT_SOURCE = "chatgpt"
MESSAGES = "mapping"

HIDDEN = "is hidden in ChatGPT itself"
INSTRUCTIONS = "repeats your instructions or ChatGPT's own notes, which are no conversation"
THINKING = "is the model's thinking, not what it said"
ONLY_PIECES = "holds no words, only images, sound or files"
# The text field of content types that are not a list of parts.
_TEXT_FIELD = {
    "code": "text",
    "execution_output": "text",
    "system_error": "text",
    "tether_quote": "text",
    "sonic_webpage": "text",
    "tether_browsing_display": "result",
    "citable_code_output": "output_str",
}
# What ChatGPT remembers of its user, in one text: it precedes a conversation.
_MEMORIES = "model_editable_context"
_NOT_SAID = {
    "thoughts": THINKING,
    "reasoning_recap": THINKING,
    "user_editable_context": INSTRUCTIONS,
    _MEMORIES: INSTRUCTIONS,
}
_OF_A_TOOL = {"code", "execution_output"}
# To whom a new document of the canvas is sent, as JSON.
_CANVAS = "canmore.create_textdoc"
_PIECES = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "sound",
    "real_time_user_audio_video_asset_pointer": "sound",
    "video_container_asset_pointer": "video",
}


def chatgpt_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times. The newest of what ChatGPT remembers comes last."""
    newest: tuple[datetime, str] | None = None
    for number, item in enumerate(list_items(part), start=1):
        raw = conversation_object(item, MESSAGES, dict, number, part.name)
        found = _memories(raw, latest)
        newest = max(found if newest is None else (newest, *found), default=None)
        yield _read_chatgpt(raw, latest)
    if newest is not None:
        yield _of_memories(*newest)


def _is_chatgpt(head: Head) -> bool:
    # Those of DeepSeek have a time of another name.
    return head.is_listed and MESSAGES in head.value and "inserted_at" not in head.value


CHATGPT_FORMAT = Format(
    CHATGPT_SOURCE,
    "ChatGPT export",
    where="In ChatGPT: Settings → Data controls → Export data. A link comes by e-mail. "
    "Give the zip as it is, or the conversations.json in it.",
    becomes="each conversation; every other branch is one of its own; what ChatGPT "
    "remembers of you",
    skips="hidden messages, instructions, reasoning, images, sound, files",
    recognises=_is_chatgpt,
    members=named(r"conversations(-\d+)?\.json"),
    conversations=chatgpt_conversations,
)


def _read_chatgpt(raw: dict[str, Any], latest: datetime) -> Conversation:
    nodes = as_mapping(raw.get(MESSAGES))
    messages = {key: as_mapping(node).get("message") for key, node in nodes.items()}
    gatherer = Gatherer()

    def add(node_id: str, said_at: datetime) -> None:
        if messages[node_id] is not None:
            add_message(gatherer, node_id, messages[node_id], said_at)

    def name(shown: list[str]) -> str:
        """The conversation's id; the earliest exports have none, so use the first message's."""
        own = as_id(raw.get("conversation_id")) or as_id(raw.get("id"))
        spoken = (node_id for node_id in shown if messages[node_id] is not None)
        return own or derived_id(raw.get("create_time"), next(spoken, None))

    known = filter(None, map(_message_time, messages.values()))
    start = as_time(raw.get("create_time")) or min(known, default=latest)
    parents = {key: parent_of(node) for key, node in nodes.items()}
    tree = MessageTree(parents, raw.get("current_node"))
    reader = TreeReader(tree, gatherer, start, lambda key: _message_time(messages[key]), add)
    return reader.conversation(CHATGPT_SOURCE, label(raw.get("title")), name)


def _memories(raw: dict[str, Any], latest: datetime) -> Iterator[tuple[datetime, str]]:
    start = as_time(raw.get("create_time")) or latest
    for node in as_mapping(raw.get(MESSAGES)).values():
        message = as_mapping(node).get("message")
        content = as_mapping(as_mapping(message).get("content"))
        text = content.get("model_set_context")
        if content.get("content_type") == _MEMORIES and isinstance(text, str) and text.strip():
            yield _message_time(message) or start, text


def _of_memories(said_at: datetime, text: str) -> Conversation:
    gatherer = Gatherer()
    # What has changed is another message; the earlier one stays.
    gatherer.add(digest(text)[:32], "assistant", text, said_at)
    transcript = Transcript(
        CHATGPT_SOURCE, "memories", "What ChatGPT remembers", gatherer.take_turns()
    )
    return gatherer.conversation(transcript)


def _message_time(message: Any) -> datetime | None:
    fields = as_mapping(message)
    return as_time(fields.get("create_time")) or as_time(fields.get("update_time"))


def add_message(gatherer: Gatherer, node_id: str, message: Any, said_at: datetime) -> None:
    content = as_mapping(as_mapping(message).get("content"))
    kind = content.get("content_type")
    if not isinstance(kind, str):
        gatherer.skip(UNKNOWN_FORM)
    elif kind in _NOT_SAID:
        gatherer.skip(_NOT_SAID[kind])
    elif as_mapping(message.get("metadata")).get("is_visually_hidden_from_conversation") is True:
        gatherer.skip(HIDDEN)
    else:
        _add_said(gatherer, as_id(node_id) or "~", message, said_at)


def _add_said(
    gatherer: Gatherer, external_id: str, message: dict[str, Any], said_at: datetime
) -> None:
    content = message["content"]
    author = as_mapping(message.get("author"))
    text, document = _text(content), _canvas(message)
    pieces = [*_pieces(content), *_files(message)]
    for piece in pieces:
        gatherer.leave_out(piece)
    if text is None:
        gatherer.skip(UNKNOWN_FORM)
    elif pieces and not text.strip():
        gatherer.skip(ONLY_PIECES)
    elif document:
        words, about = document
        gatherer.add(external_id, "assistant", words, said_at, metadata={"canvas": about})
    else:
        role = _role(author, message.get("recipient"), content["content_type"])
        gatherer.add(external_id, role, text, said_at, author.get("name"))


def _canvas(message: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The text of a new document of the canvas, and its name and type; else None."""
    if message.get("recipient") != _CANVAS:
        return None
    try:
        document = as_mapping(json.loads(_text(message["content"]) or ""))
    except (ValueError, RecursionError):
        return None  # It is kept as it is.
    text = document.get("content")
    about = {key: document[key] for key in ("name", "type") if document.get(key)}
    return (text, about) if isinstance(text, str) and text.strip() else None


def _text(content: dict[str, Any]) -> str | None:
    """The text; None for unknown content types."""
    field = _TEXT_FIELD.get(content["content_type"], "text")
    if isinstance(content.get("parts"), list):
        return "".join(_spoken(part) for part in content["parts"])
    text = content.get(field)
    return text if isinstance(text, str) else None


def _spoken(part: Any) -> str:
    """A part's text: itself, or an audio transcription."""
    if isinstance(part, str):
        return part
    if as_mapping(part).get("content_type") == "audio_transcription":
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""


def _pieces(content: dict[str, Any]) -> list[str]:
    objects = [part for part in as_list(content.get("parts")) if isinstance(part, dict)]
    kinds = [str(part.get("content_type")) for part in objects]
    return [
        _PIECES.get(kind, "piece of another kind")
        for kind in kinds
        if kind != "audio_transcription"
    ]


def _files(message: dict[str, Any]) -> list[str]:
    """Uploaded files; images are counted as parts."""
    attached = as_list(as_mapping(message.get("metadata")).get("attachments"))
    types = [as_mapping(file).get("mime_type") for file in attached]
    return ["file" for kind in types if not str(kind).startswith("image/")]


def _role(author: dict[str, Any], recipient: object, kind: str) -> object:
    """The role; messages to and from a tool are both the tool's."""
    role = author.get("role")
    to_a_tool = role == "assistant" and recipient not in (None, "", "all")
    return "tool" if to_a_tool or kind in _OF_A_TOOL else role


DEEPSEEK_SOURCE = "deepseek"
_ROLES = {"REQUEST": "user", "RESPONSE": "assistant"}
_LEFT_OUT = {"THINK": "thinking", "SEARCH": "search"}


def _is_deepseek(head: Head) -> bool:
    item = as_mapping(head.value)
    return head.is_listed and MESSAGES in item and "inserted_at" in item


def deepseek_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for number, item in enumerate(list_items(part), start=1):
        raw = conversation_object(item, MESSAGES, dict, number, part.name)
        yield _read_deepseek(raw, latest)


DEEPSEEK_FORMAT = Format(
    DEEPSEEK_SOURCE,
    "DeepSeek export",
    where="In DeepSeek: Settings → Data → Export data. Give the zip as it is, or the "
    "conversations.json in it.",
    becomes="each conversation; every other branch is one of its own",
    skips="reasoning, searches, files",
    recognises=_is_deepseek,
    members=named(r"conversations(-\d+)?\.json"),
    conversations=deepseek_conversations,
)


def _read_deepseek(raw: dict[str, Any], latest: datetime) -> Conversation:
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
    return reader.conversation(DEEPSEEK_SOURCE, title, lambda _: name)


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
