"""Chat programs that people host themselves: Open WebUI, LibreChat and SillyTavern.

Open WebUI's export is a list of chats, each a tree of messages called `history`. LibreChat's is an
object with the messages of a conversation, as a list or as a tree. SillyTavern's chats are JSON
Lines, the first with the names, each other one a message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from language.transcripts import Transcript
from palace.transfer.importers.conversation import (
    REPEATED,
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
from palace.transfer.importers.json_stream import documents, lines_of_a_log
from palace.transfer.importers.message_forms import MessageTree, TreeReader, parent_of

OPEN_WEBUI_SOURCE = "open-webui"
ONLY_DETAILS = "holds no words, only reasoning, tool calls or files"
# Open WebUI writes these into the answer, folded.
_FOLDED = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"')
_OPEN_WEBUI_LEFT_OUT = {
    "reasoning": "thinking",
    "tool_calls": "tool call",
    "code_interpreter": "tool call",
}
_END = "</details>"


def _is_open_webui(head: Head) -> bool:
    chat = as_mapping(as_mapping(head.value).get("chat"))
    return any(key in chat for key in ("history", "messages", "models"))


def open_webui_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in documents(part):
        yield _read_open_webui(as_mapping(item), latest)


OPEN_WEBUI_FORMAT = Format(
    OPEN_WEBUI_SOURCE,
    "Open WebUI export",
    where="In Open WebUI: Settings → Data controls → Export chats; or of one chat, in its menu: "
    "Download → Export chat (.json).",
    becomes="each chat; every other branch is one of its own",
    skips="reasoning, tool calls, images, files",
    recognises=_is_open_webui,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=open_webui_conversations,
)


def _read_open_webui(raw: dict[str, Any], latest: datetime) -> Conversation:
    chat = as_mapping(raw.get("chat"))
    history = as_mapping(chat.get("history"))
    messages = as_mapping(history.get("messages")) or _in_a_row(chat)
    gatherer = Gatherer()

    def add(key: str, said_at: datetime) -> None:
        _add_open_webui(gatherer, key, as_mapping(messages[key]), said_at)

    known = filter(None, map(_time, messages.values()))
    start = as_time(raw.get("created_at")) or _time(chat) or min(known, default=latest)
    title = label(chat.get("title")) or label(raw.get("title"))
    own = as_id(raw.get("id")) or as_id(chat.get("id"))
    name = own or derived_id(title, next(iter(messages), None))
    parents = {key: parent_of(message, "parentId") for key, message in messages.items()}
    tree = MessageTree(parents, history.get("currentId"))
    reader = TreeReader(tree, gatherer, start, lambda key: _time(messages[key]), add)
    return reader.conversation(OPEN_WEBUI_SOURCE, title, lambda _: name)


def _add_open_webui(
    gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime
) -> None:
    text = message.get("content")
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
        return
    for file in as_list(message.get("files")):
        gatherer.leave_out("image" if as_mapping(file).get("type") == "image" else "file")
    spoken = _without_folded(text, gatherer)
    if not spoken.strip() and (text.strip() or message.get("files")):
        gatherer.skip(ONLY_DETAILS)
    else:
        gatherer.add(as_id(key) or "~", message.get("role"), spoken, said_at)


def _in_a_row(chat: dict[str, Any]) -> dict[str, Any]:
    """The messages of the first versions: a list without branches."""
    listed = enumerate(map(as_mapping, as_list(chat.get("messages"))))
    messages = {as_id(message.get("id")) or str(place): message for place, message in listed}
    before = [None, *messages]
    return {
        key: {"parentId": parent, **message}
        for parent, (key, message) in zip(before, messages.items(), strict=False)
    }


def _time(message: Any) -> datetime | None:
    """Seconds; chats themselves have milliseconds."""
    stamp = as_mapping(message).get("timestamp")
    is_in_ms = isinstance(stamp, int | float) and stamp > 1e11
    return as_time(stamp / 1000 if is_in_ms and stamp is not None else stamp)


def _without_folded(text: str, gatherer: Gatherer) -> str:
    """The text without reasoning and tool calls; the rest to the byte."""
    pieces, at = [], 0
    for found in _FOLDED.finditer(text):
        end = text.find(_END, found.end()) if found.start() >= at else -1
        if end < 0:
            continue
        gatherer.leave_out(_OPEN_WEBUI_LEFT_OUT[found[1]])
        pieces.append(text[at : found.start()])
        at = end + len(_END)
        at += text.startswith("\n", at)
    pieces.append(text[at:])
    return "".join(pieces)


LIBRECHAT_SOURCE = "librechat"
FAILED = "is an error, not an answer"
ONLY_PIECES = "holds no words, only reasoning, tool calls or files"
_LIBRECHAT_LEFT_OUT = {"think": "thinking", "tool_call": "tool call", "image_file": "image"}


def _is_librechat(head: Head) -> bool:
    item = as_mapping(head.value)
    return "conversationId" in item and any(
        key in item for key in ("messages", "messagesTree", "exportAt", "endpoint")
    )


def librechat_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for item in documents(part):
        yield _read_librechat(as_mapping(item), latest)


LIBRECHAT_FORMAT = Format(
    LIBRECHAT_SOURCE,
    "LibreChat export",
    where="In LibreChat, in the menu of a conversation: Export, as JSON, with all branches if you "
    "want them. Give the file, or a zip of several.",
    becomes="each conversation; every other branch is one of its own",
    skips="errors, reasoning, tool calls, images, files",
    recognises=_is_librechat,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=librechat_conversations,
)


def _read_librechat(raw: dict[str, Any], latest: datetime) -> Conversation:
    gatherer = Gatherer()
    messages: dict[str, dict[str, Any]] = {}
    parents: dict[str, str | None] = {}
    for parent, message in _all_messages(raw):
        key = as_id(message.get("messageId")) or f"~{len(messages)}"
        if key in messages:
            gatherer.skip(REPEATED)
            continue
        messages[key] = message
        parents[key] = as_id(message.get("parentMessageId")) or parent

    def time_of(key: str) -> datetime | None:
        return as_time(messages[key].get("createdAt"))

    start = min(filter(None, map(time_of, messages)), default=latest)
    title = label(raw.get("title"))
    own = as_id(raw.get("conversationId"))
    name = own or derived_id(title, next(iter(messages), None))
    tree = MessageTree(parents, None)
    reader = TreeReader(
        tree,
        gatherer,
        start,
        time_of,
        lambda key, at: _add_librechat(gatherer, key, messages[key], at),
    )
    return reader.conversation(LIBRECHAT_SOURCE, title, lambda _: name)


def _add_librechat(
    gatherer: Gatherer, key: str, message: dict[str, Any], said_at: datetime
) -> None:
    for _ in as_list(message.get("files")):
        gatherer.leave_out("file")
    text, has_others = _words(message, gatherer)
    if message.get("error") is True:
        gatherer.skip(FAILED)
    elif text is None:
        gatherer.skip(UNKNOWN_FORM)
    elif not text.strip() and (has_others or message.get("files")):
        gatherer.skip(ONLY_PIECES)
    else:
        role = "user" if message.get("isCreatedByUser") is True else "assistant"
        gatherer.add(key, role, text, said_at)


def _all_messages(raw: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """(id of the parent, message) of each, whether they are listed or nested as children."""
    tree = raw.get("messagesTree")
    listed = as_list(raw.get("messages")) or (tree if isinstance(tree, list) else [tree])
    waiting: list[tuple[str | None, Any]] = [(None, each) for each in reversed(listed)]
    while waiting:
        parent, message = waiting.pop()
        if isinstance(message, dict):
            yield parent, message
            own = as_id(message.get("messageId")) or None
            waiting += [(own, child) for child in reversed(as_list(message.get("children")))]


def _words(message: dict[str, Any], gatherer: Gatherer) -> tuple[str | None, bool]:
    """The text, and whether there are other pieces."""
    pieces = as_list(message.get("content"))
    texts, has_others = [], False
    for piece in map(as_mapping, pieces):
        text = piece.get("text")
        # Assistants have it within an object.
        text = as_mapping(text).get("value") if isinstance(text, dict) else text
        if piece.get("type") == "text" and isinstance(text, str):
            texts.append(text)
        else:
            has_others = True
            gatherer.leave_out(
                _LIBRECHAT_LEFT_OUT.get(str(piece.get("type")), "piece of another kind")
            )
    whole = message.get("text")
    if texts or not isinstance(whole, str):
        return ("\n\n".join(texts) if pieces else None), has_others
    return whole, has_others


SILLY_TAVERN_SOURCE = "sillytavern"
# Two forms of earlier versions: "2024-6-1 @10h 00m 00s 123ms" and "June 1, 2024 10:00am".
_HUMANIZED = re.compile(r"(\d{4})-(\d\d?)-(\d\d?) ?@ ?(\d\d?)h ?(\d\d?)m ?(\d\d?)s")
_SPELT = "%B %d, %Y %I:%M%p"
_LONGEST_TIME = 40


def _is_silly_tavern(head: Head) -> bool:
    fields = as_mapping(head.value)
    is_head = "chat_metadata" in fields or {"user_name", "character_name"} <= fields.keys()
    return not head.is_listed and (is_head or _is_message(fields))


def _is_message(fields: dict[str, Any]) -> bool:
    return "mes" in fields and "is_user" in fields


def silly_tavern_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    gatherer, said_at, character = Gatherer(), None, ""
    seen: Counter[str] = Counter()
    for number, fields in enumerate(lines_of_a_log(part, gatherer)):
        if _is_message(fields):
            said_at = _silly_tavern_time(fields.get("send_date")) or said_at or latest
            # Messages have no ids, and their lines change when one is deleted.
            key = derived_id(fields.get("send_date"), fields["mes"])
            seen[key] += 1
            _add(gatherer, f"{key}~{seen[key]}", fields, said_at)
            character = character or ("" if fields["is_user"] else label(fields.get("name")))
        elif number:
            gatherer.skip(UNKNOWN_FORM)
        else:
            # Newer versions write that the field is not used.
            character = label(fields.get("character_name")).removesuffix("unused")
            said_at = _silly_tavern_time(fields.get("create_date"))
    # Each chat is a file, which is named by the character and the time of its beginning.
    name = PurePosixPath(part.name).name.removesuffix(".gz").removesuffix(".jsonl")
    yield gatherer.conversation(
        Transcript(
            SILLY_TAVERN_SOURCE, as_id(name) or "~", label(name), gatherer.take_turns(), character
        )
    )


SILLY_TAVERN_FORMAT = Format(
    SILLY_TAVERN_SOURCE,
    "SillyTavern chat",
    where="The folder data/default-user/chats, a zip of it, or one of the .jsonl files in it.",
    becomes="each file",
    skips="other answers to the same message, reasoning, pictures, files",
    recognises=_is_silly_tavern,
    members=named(r".+\.jsonl"),
    conversations=silly_tavern_conversations,
)


def _add(gatherer: Gatherer, key: str, fields: dict[str, Any], said_at: datetime) -> None:
    for _ in as_list(fields.get("swipes"))[1:]:
        gatherer.leave_out("other answer")
    extra = as_mapping(fields.get("extra"))
    pieces = (("reasoning", "thinking"), ("image", "image"), ("file", "file"))
    for name, what in pieces:
        if extra.get(name):
            gatherer.leave_out(what)
    text = fields["mes"]
    if not isinstance(text, str):
        gatherer.skip(UNKNOWN_FORM)
    else:
        gatherer.add(key, _role(fields), text, said_at, fields.get("name"))


def _role(fields: dict[str, Any]) -> str:
    if fields["is_user"]:
        return "user"
    return "system" if fields.get("is_system") else "assistant"


def _silly_tavern_time(value: Any) -> datetime | None:
    if isinstance(value, int | float):
        return as_time(value / 1000 if value > 1e11 else value)
    if not isinstance(value, str):
        return None
    if found := _HUMANIZED.match(value):
        year, month, day, hour, minute, second = found.groups()
        value = f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute:0>2}:{second:0>2}"
    return as_time(value) or _spelt(value)


def _spelt(value: str) -> datetime | None:
    try:
        return datetime.strptime(value[:_LONGEST_TIME], _SPELT).replace(tzinfo=UTC)
    except ValueError:
        return None
