"""The chats of WhatsApp and Telegram.

WhatsApp exports a chat as a text file, whose lines are dated as the phone shows dates:
`12/03/2024, 10:15 - Ana: Hi` on Android, `[12.03.24, 10:15:30] Ana: Hi` on iPhones. Whether the day
or the month comes first is found from the first date that shows it, or else from their order.

Telegram Desktop exports one chat, or all of an account's, as JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import PurePosixPath
from typing import Any

from language.errors import BadImport
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
from palace.transfer.importers.files import Archive, Format, Head, Part, named
from palace.transfer.importers.json_stream import LARGEST_ITEM, JsonReader

WHATSAPP_SOURCE = "whatsapp"
WHATSAPP_NOTICE = "is WhatsApp's own note"
NO_WORDS = "holds no words, only a picture, sound, a file or a note that it was deleted"

# Characters that set the direction of text, and marks of the beginning.
_MARKS = "\ufeff\u200e\u200f\u202a\u202b\u202c"
_SPACE = "[ \u00a0\u202f]"
_DATE = rf"(\d{{1,4}})({_SPACE}?[./-]{_SPACE}?)(\d{{1,2}})[./-]{_SPACE}?(\d{{1,4}})\.?"
_TIME = rf"(\d{{1,2}})[:.](\d{{2}})(?:[:.](\d{{2}}))?(?:{_SPACE}?([AaPp])\.?{_SPACE}?[Mm]\.?)?"
# Between date and time there may be a word, such as the Finnish “klo”.
_WORD = rf"(?:[^\W\d]{{1,4}}{_SPACE})?"
_HEADS = (
    re.compile(rf"\[{_DATE}(?:,{_SPACE}|{_SPACE}(?=[^\W\d])){_WORD}{_TIME}\]{_SPACE}"),
    re.compile(rf"{_DATE},?{_SPACE}{_WORD}{_TIME}{_SPACE}[-–]{_SPACE}"),
)
_OMITTED = re.compile(r"<[^<>\n]{1,80}>|[^\s<>][^\n<>]{0,80}\.\w{2,5} \([^()\n]{1,60}\)")
_DELETED = {"This message was deleted", "You deleted this message", "null"}
_CHAT_NAME = re.compile(r".*?WhatsApp\S*(?: chat)?(?: (?:with|mit|con|com|avec|de|-|–))? ?", re.I)
_COPY = re.compile(r" ?\(\d{1,3}\)$")
_LINES_TO_LOOK_AT = 5
# The most text that is read for a date that shows the order of day and month.
_MOST_UNDECIDED = 32 << 20


@dataclass(frozen=True, slots=True)
class _Written:
    """A message as it is written: date parts in their order, and the rest of its first line."""

    date: tuple[str, str, str]
    is_dotted: bool
    time: tuple[int, int, int]
    half: str
    rest: str

    @property
    def order(self) -> str:
        """The order of day, month and year; empty if the date does not tell."""
        first, second, _ = self.date
        if len(first) == 4:
            return "ymd"
        if self.is_dotted or int(first) > 12:
            return "dmy"
        return "mdy" if int(second) > 12 else ""

    def said_at(self, order: str) -> datetime | None:
        parts = dict(zip(order, map(int, self.date), strict=True))
        hour, minute, second = self.time
        if self.half:
            hour = hour % 12 + 12 * (self.half in "pP")
        year = parts["y"] + (2000 if parts["y"] < 100 else 0)
        try:
            return datetime(year, parts["m"], parts["d"], hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None


def _is_whatsapp(head: Head) -> bool:
    lines = head.text.split("\n", _LINES_TO_LOOK_AT)[:_LINES_TO_LOOK_AT]
    return any(_head(line) for line in lines)


def whatsapp_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces times that are no dates."""
    yield from _days(part, PurePosixPath(part.name).stem, latest)


def of_archive(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    """On iPhones the file is always called _chat.txt; its zip or folder has the chat's name."""
    for name in _members(archive.members):
        path = PurePosixPath(name)
        parent = path.parent.name or archive.name.removesuffix(".zip")
        with archive.part(name) as part:
            yield from _days(part, parent if path.stem == "_chat" else path.stem, latest)


_members = named(r"_chat\.txt|.*whatsapp.*\.txt")
WHATSAPP_FORMAT = Format(
    WHATSAPP_SOURCE,
    "WhatsApp chat",
    where="In WhatsApp, in the menu of a chat: Export chat, without media. Give the .txt or the "
    "zip; the chat has the name of the file.",
    becomes="a chat's day",
    skips="WhatsApp's notes, pictures, sound, files, deleted messages",
    recognises=_is_whatsapp,
    members=_members,
    conversations=whatsapp_conversations,
    of_archive=of_archive,
)


def _days(part: Part, file: str, latest: datetime) -> Iterator[Conversation]:
    name = _COPY.sub("", _CHAT_NAME.sub("", file, count=1)) or file
    order, written = _with_order(_written(part))
    yield from days_of_chat(
        WHATSAPP_SOURCE, as_id(name) or "~", name, _whatsapp_messages(written, order, latest)
    )


def _head(line: str) -> tuple[_Written, str] | None:
    """The head of a message, and the line without it."""
    shown = line.lstrip(_MARKS)
    for pattern in _HEADS:
        if found := pattern.match(shown):
            first, sign, second, third, hour, minute, second_, half = found.groups()
            time = (int(hour), int(minute), int(second_ or 0))
            rest = shown[found.end() :]
            is_dotted = "." in sign
            return _Written((first, second, third), is_dotted, time, half or "", rest), rest
    return None


def _written(part: Part) -> Iterator[_Written]:
    """The messages, each with all its lines."""
    message: _Written | None = None
    lines: list[str] = []
    size = 0
    while raw := part.stream.readline(LARGEST_ITEM):
        line = raw.decode(errors="surrogateescape")
        if head := _head(line):
            yield from _whole(message, lines)
            message, lines, size = head[0], [head[1]], 0
        else:
            lines.append(line)
        size += len(line)
        if size > LARGEST_ITEM:
            raise BadImport(f"{part.name} holds a message of more than {LARGEST_ITEM >> 20} MB.")
    yield from _whole(message, lines)


def _whole(message: _Written | None, lines: list[str]) -> Iterator[_Written]:
    """The message without the end of its last line; nothing before the first one."""
    if message:
        text = "".join(lines).removesuffix("\n").removesuffix("\r")
        yield _Written(message.date, message.is_dotted, message.time, message.half, text)


def _with_order(written: Iterator[_Written]) -> tuple[str, Iterable[_Written]]:
    """The order of day, month and year, and all messages."""
    seen: list[_Written] = []
    size = 0
    for message in written:
        seen.append(message)
        size += len(message.rest)
        if message.order:
            return message.order, chain(seen, written)
        if size > _MOST_UNDECIDED:
            break
    return _likelier_order(seen), chain(seen, written)


def _likelier_order(seen: list[_Written]) -> str:
    """The order in which time goes back less often; American phones show AM and PM."""

    def steps_back(order: str) -> int:
        known = [time for time in (each.said_at(order) for each in seen) if time]
        return sum(before > after for before, after in pairwise(known))

    in_halves = any(message.half for message in seen)
    orders = ("mdy", "dmy") if in_halves else ("dmy", "mdy")
    return min(orders, key=steps_back)


def _whatsapp_messages(
    written: Iterable[_Written], order: str, latest: datetime
) -> Iterator[Message]:
    count: Counter[tuple[str, str]] = Counter()
    before = latest
    for message in written:
        said_at = message.said_at(message.order or order) or before
        if said_at.date() != before.date():
            count.clear()
        before = said_at
        speaker, text, reason = _read(message.rest)
        same = (f"{said_at.isoformat()} {speaker}", text)
        count[same] += 1
        name = derived_id(*same, count[same])
        yield Message(name, said_at, speaker, text, skipped=reason)


def _read(rest: str) -> tuple[str, str, str]:
    """Speaker, text, and why the message is skipped, if it is."""
    first_line = rest.partition("\n")[0]
    speaker, colon, _ = first_line.partition(":")
    is_notice = not colon or any(sign in speaker for sign in '"“”') or len(speaker) > 100
    if is_notice:
        return "", rest, WHATSAPP_NOTICE
    text = rest[len(speaker) + 1 :].removeprefix(" ")
    speaker = speaker.strip(f"{_MARKS} ~\u00a0\u202f")
    # On iPhones, a mark of direction begins what WhatsApp itself writes.
    is_empty = text.startswith("\u200e") or text in _DELETED or _OMITTED.fullmatch(text)
    return speaker, text, NO_WORDS if is_empty else ""


TELEGRAM_SOURCE = "telegram"
TELEGRAM_NOTICE = "is Telegram's own note of who came, called or changed something"
ONLY_FILES = "holds no words, only pictures, sound, stickers or files"
_CHATS = ("chats", "left_chats")
_KINDS = {
    *("personal_chat", "bot_chat", "saved_messages", "private_group", "public_group"),
    *("private_supergroup", "public_supergroup", "private_channel", "public_channel"),
}
_FILES = ("photo", "file", "sticker_emoji", "location_information", "contact_information", "poll")
_BESIDE = ("forwarded_from", "reply_to_message_id", "edited", "via_bot")


def _is_telegram(head: Head) -> bool:
    fields = as_mapping(head.value)
    first = as_mapping(next(iter(as_list(fields.get("messages"))), None))
    is_chat = str(fields.get("type")) in _KINDS and "name" in fields
    is_message = str(first.get("type")) in ("message", "service") and "date" in first
    listed = any("list" in as_mapping(fields.get(key)) for key in _CHATS)
    is_account = "about" in fields and "personal_information" in fields
    return not head.is_listed and (is_chat or is_message or listed or is_account)


def telegram_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    reader = JsonReader(part)
    yield from _object(reader, latest, of_account=True)
    if reader.peek():
        reader.fail("goes on after its object has ended")


TELEGRAM_FORMAT = Format(
    TELEGRAM_SOURCE,
    "Telegram export",
    where="In Telegram Desktop, of one chat: ⋮ → Export chat history; of all: Settings → Advanced "
    "→ Export Telegram data; each time the format JSON. Give result.json, or a zip of its folder.",
    becomes="a chat's day (UTC)",
    skips="notices, messages without words, pictures, sound, files",
    recognises=_is_telegram,
    members=named(r"result\.json"),
    conversations=telegram_conversations,
)


def _object(reader: JsonReader, latest: datetime, *, of_account: bool) -> Iterator[Conversation]:
    """The chats in an account, or the days of a chat; its name comes before its messages."""
    about: dict[str, Any] = {}
    for key in reader.fields():
        if key == "messages" and reader.peek() == "[":
            chat = as_id(about.get("id")) or derived_id(about.get("name"))
            title = label(about.get("name")) or str(about.get("type") or "").replace("_", " ")
            yield from days_of_chat(
                TELEGRAM_SOURCE, chat, title, _telegram_messages(reader, latest)
            )
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


def _telegram_messages(reader: JsonReader, latest: datetime) -> Iterator[Message]:
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
        return TELEGRAM_NOTICE
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
