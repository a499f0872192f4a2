"""Discord's channels as DiscordChatExporter writes them in JSON: a file of each."""

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

SOURCE = "discord"
NOTICE = "is Discord's own note of who came, called or changed something"
ONLY_FILES = "holds no words, only files, stickers or previews"
_NOTICES = {
    *("RecipientAdd", "RecipientRemove", "Call", "ChannelNameChange", "ChannelIconChange"),
    *("ChannelPinnedMessage", "GuildMemberJoin", "ThreadCreated", "UserPremiumGuildSubscription"),
}
_PIECES = (("attachments", "file"), ("stickers", "sticker"), ("embeds", "preview of a link"))


def _recognises(head: Head) -> bool:
    fields = as_mapping(head.value)
    return not head.is_listed and "id" in as_mapping(fields.get("channel")) and "guild" in fields


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times. The channel comes before its messages."""
    reader, about = JsonReader(part), dict[str, Any]()
    for key in reader.fields():
        if key == "messages" and reader.peek() == "[":
            channel = as_mapping(about.get("channel"))
            chat = as_id(channel.get("id")) or derived_id(channel.get("name"))
            yield from days_of_chat(SOURCE, chat, _title(about), _messages(reader, latest))
        else:
            about[key] = reader.value()
    if reader.peek():
        reader.fail("goes on after its object has ended")


FORMAT = Format(
    SOURCE,
    "Discord export",
    where="Discord's own export has only what you wrote; export a channel with "
    "DiscordChatExporter, as JSON. Give the file, or a zip or folder of several.",
    becomes="a channel's day (UTC)",
    skips="notices, messages without words, files, stickers, previews of links",
    recognises=_recognises,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=conversations,
)


def _title(about: dict[str, Any]) -> str:
    server, channel = (as_mapping(about.get(key)).get("name") for key in ("guild", "channel"))
    return " / ".join(filter(None, map(label, (server, channel))))


def _messages(reader: JsonReader, latest: datetime) -> Iterator[Message]:
    for _ in reader.elements():
        message = _message(as_mapping(reader.value()), latest)
        latest = message.said_at
        yield message


def _message(fields: dict[str, Any], latest: datetime) -> Message:
    text, author = fields.get("content"), as_mapping(fields.get("author"))
    pieces = tuple(what for key, what in _PIECES for _ in as_list(fields.get(key)))
    answered = as_mapping(fields.get("reference")).get("messageId")
    beside = {"reply_to": answered, "edited": fields.get("timestampEdited")}
    kept_with = {key: value for key, value in beside.items() if value}
    return Message(
        as_id(fields.get("id")) or derived_id(fields.get("timestamp"), text),
        as_time(fields.get("timestamp")) or latest,
        label(author.get("nickname")) or label(author.get("name")) or as_id(author.get("id")),
        text if isinstance(text, str) else "",
        {"discord": kept_with} if kept_with else None,
        _reason(fields, text, has_pieces=bool(pieces)),
        pieces,
        "tool" if author.get("isBot") is True else "user",
    )


def _reason(fields: dict[str, Any], text: object, *, has_pieces: bool) -> str:
    if str(fields.get("type")) in _NOTICES:
        return NOTICE
    if not isinstance(text, str):
        return UNKNOWN_FORM
    return ONLY_FILES if has_pieces and not text.strip() else ""
