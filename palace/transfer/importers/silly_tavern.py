"""SillyTavern's chats: JSON Lines, the first with the names, each other one a message."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
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
    derived_id,
    label,
)
from palace.transfer.importers.files import Format, Head, Part, named
from palace.transfer.importers.json_stream import lines_of_a_log

SOURCE = "sillytavern"
# Two forms of earlier versions: "2024-6-1 @10h 00m 00s 123ms" and "June 1, 2024 10:00am".
_HUMANIZED = re.compile(r"(\d{4})-(\d\d?)-(\d\d?) ?@ ?(\d\d?)h ?(\d\d?)m ?(\d\d?)s")
_SPELT = "%B %d, %Y %I:%M%p"
_LONGEST_TIME = 40


def _recognises(head: Head) -> bool:
    fields = as_mapping(head.value)
    is_head = "chat_metadata" in fields or {"user_name", "character_name"} <= fields.keys()
    return not head.is_listed and (is_head or _is_message(fields))


def _is_message(fields: dict[str, Any]) -> bool:
    return "mes" in fields and "is_user" in fields


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    gatherer, said_at, character = Gatherer(), None, ""
    seen: Counter[str] = Counter()
    for number, fields in enumerate(lines_of_a_log(part, gatherer)):
        if _is_message(fields):
            said_at = _time(fields.get("send_date")) or said_at or latest
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
            said_at = _time(fields.get("create_date"))
    # Each chat is a file, which is named by the character and the time of its beginning.
    name = PurePosixPath(part.name).name.removesuffix(".gz").removesuffix(".jsonl")
    yield gatherer.conversation(
        Transcript(SOURCE, as_id(name) or "~", label(name), gatherer.take_turns(), character)
    )


FORMAT = Format(
    SOURCE,
    "SillyTavern chat",
    where="The folder data/default-user/chats, a zip of it, or one of the .jsonl files in it.",
    becomes="each file",
    skips="other answers to the same message, reasoning, pictures, files",
    recognises=_recognises,
    members=named(r".+\.jsonl"),
    conversations=conversations,
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


def _time(value: Any) -> datetime | None:
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
