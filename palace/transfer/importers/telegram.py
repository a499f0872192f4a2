"""Telegram Desktop's export as JSON: one chat, or all of an account's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Message,
    as_id,
    as_list,
    as_mapping,
    as_time,
    days_of_chat,
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import JsonReader

SOURCE = "telegram"
NOTICE = "is Telegram's own note of who came, called or changed something"
ONLY_FILES = "holds no words, only pictures, sound, stickers or files"
_CHATS = ("chats", "left_chats")
_KINDS = {
    *("personal_chat", "bot_chat", "saved_messages", "private_group", "public_group"),
    *("private_supergroup", "public_supergroup", "private_channel", "public_channel"),
}
_FILES = ("photo", "file", "sticker_emoji", "location_information", "contact_information", "poll")
_BESIDE = ("forwarded_from", "reply_to_message_id", "edited", "via_bot")


def _recognises(head: Head) -> bool:
    fields = as_mapping(head.value)
    first = as_mapping(next(iter(as_list(fields.get("messages"))), None))
    is_chat = str(fields.get("type")) in _KINDS and "name" in fields
    is_message = str(first.get("type")) in ("message", "service") and "date" in first
    listed = any("list" in as_mapping(fields.get(key)) for key in _CHATS)
    is_account = "about" in fields and "personal_information" in fields
    return not head.is_listed and (is_chat or is_message or listed or is_account)


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    reader = JsonReader(part)
    yield from _object(reader, latest, of_account=True)
    if reader.peek():
        reader.fail("goes on after its object has ended")


FORMAT = Format(
    SOURCE,
    "Telegram export",
    where="In Telegram Desktop, of one chat: ⋮ → Export chat history; of all: Settings → Advanced "
    "→ Export Telegram data; each time the format JSON. Give result.json, or a zip of its folder.",
    becomes="a chat's day (UTC)",
    skips="notices, messages without words, pictures, sound, files",
    recognises=_recognises,
    members=named(r"result\.json"),
    conversations=conversations,
)


def _object(reader: JsonReader, latest: datetime, *, of_account: bool) -> Iterator[Conversation]:
    """The chats in an account, or the days of a chat; its name comes before its messages."""
    about: dict[str, Any] = {}
    for key in reader.fields():
        if key == "messages" and reader.peek() == "[":
            chat = as_id(about.get("id")) or derived_id(about.get("name"))
            title = label(about.get("name")) or str(about.get("type") or "").replace("_", " ")
            yield from days_of_chat(SOURCE, chat, title, _messages(reader, latest))
        elif of_account and key in _CHATS and reader.peek() == "{":
            yield from _listed(reader, latest)
        else:
            about[key] = reader.value()


def _listed(reader: JsonReader, latest: datetime) -> Iterator[Conversation]:
    for key in reader.fields():
        if key != "list" or reader.peek() != "[":
            reader.value()
            continue
        for _ in reader.elements():
            if reader.peek() == "{":
                yield from _object(reader, latest, of_account=False)
            else:
                reader.value()


def _messages(reader: JsonReader, latest: datetime) -> Iterator[Message]:
    for _ in reader.elements():
        message = _message(as_mapping(reader.value()), latest)
        latest = message.said_at
        yield message


def _message(fields: dict[str, Any], latest: datetime) -> Message:
    text = _text(fields.get("text"))
    files = tuple("file" for key in _FILES if fields.get(key))
    kept_with = {key: fields[key] for key in _BESIDE if fields.get(key)}
    return Message(
        as_id(fields.get("id")) or derived_id(fields.get("date"), text),
        _time(fields) or latest,
        label(fields.get("from")) or as_id(fields.get("from_id")),
        text or "",
        {"telegram": kept_with} if kept_with else None,
        _reason(fields, text, files),
        files if fields.get("type") == "message" else (),
    )


def _reason(fields: dict[str, Any], text: str | None, files: tuple[str, ...]) -> str:
    if fields.get("type") == "service":
        return NOTICE
    if fields.get("type") != "message" or text is None:
        return UNKNOWN_FORM
    return ONLY_FILES if files and not text.strip() else ""


def _time(fields: dict[str, Any]) -> datetime | None:
    """The time in UTC; the oldest exports have only that of the exporting machine."""
    stamp = fields.get("date_unixtime")
    if isinstance(stamp, str) and stamp.isascii() and stamp.isdigit() and len(stamp) < 16:
        return as_time(int(stamp))
    return as_time(fields.get("date"))


def _text(text: Any) -> str | None:
    """The text as it is shown; the address of a link whose words are others follows it."""
    if isinstance(text, str):
        return text
    if not isinstance(text, list):
        return None
    return "".join(map(_piece, text))


def _piece(piece: Any) -> str:
    fields = as_mapping(piece)
    text, address = fields.get("text"), fields.get("href")
    if not isinstance(text, str):
        return piece if isinstance(piece, str) else ""
    return f"{text} ({address})" if isinstance(address, str) and address else text
