"""One Slack message: its text as Slack shows it, its speaker, and what was omitted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from language.transcripts import Role
from palace.transfer.importers.conversation import Gatherer, as_id, as_list, as_mapping, label
from palace.transfer.importers.web_text import unescaped

NOTICE = "is Slack's own note of who came, left or changed something"
ONLY_FILES = "holds no words, only files or previews"

# Message subtypes that people write; all others are notices.
_SAID = {"bot_message", "me_message", "thread_broadcast", "file_share", "file_comment"}
_SAID |= {"reply_broadcast", "slackbot_response", "huddle_thread"}
# <@U024BE7LH>, <#C024BE7LR|general>, <!here>, <https://example.org|a link>
_LINK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")


class People:
    """Users' names by id; unlisted users go by their id."""

    def __init__(self, users: Iterable[Any]) -> None:
        self._names: dict[str, str] = {}
        self._bots: set[str] = set()
        for user in map(as_mapping, users):
            key = as_id(user.get("id"))
            self._names[key] = _name(user) or key
            if user.get("is_bot") is True:
                self._bots.add(key)

    def name_of(self, key: object) -> str:
        return self._names.get(as_id(key)) or as_id(key)

    def is_bot(self, message: dict[str, Any]) -> bool:
        by_a_bot = message.get("bot_id") or message.get("subtype") == "bot_message"
        return bool(by_a_bot) or as_id(message.get("user")) in self._bots

    def speaker(self, message: dict[str, Any]) -> str:
        """The speaker's name, from the message if it has one: bots are not listed."""
        own = as_mapping(message.get("user_profile"))
        named = label(message.get("username")) or self._names.get(as_id(message.get("user")))
        bot = label(as_mapping(message.get("bot_profile")).get("name"))
        return named or _name({"profile": own}) or bot or as_id(message.get("user"))

    def words_of(self, message: dict[str, Any]) -> str:
        """The text as Slack shows it, with names for ids and decoded entities."""
        return unescaped(_LINK.sub(self._shown, raw_text(message)))

    def _shown(self, link: re.Match[str]) -> str:
        sign, target, shown = link[1], link[2], link[3]
        if sign == "@":
            return f"@{self._names.get(target) or shown or target}"
        if sign == "#":
            return f"#{shown or target}"
        if sign == "!":
            return shown or f"@{target.partition('^')[0]}"
        return target if not shown or shown == target else f"{shown} ({target})"


def _name(user: dict[str, Any]) -> str:
    profile = as_mapping(user.get("profile"))
    names = (
        *(profile.get("display_name"), profile.get("real_name")),
        *(user.get("real_name"), user.get("name")),
    )
    return next((label(name) for name in names if label(name)), "")


def raw_text(message: dict[str, Any]) -> str:
    """The raw text. Programs often post attachments only."""
    text = message.get("text")
    if isinstance(text, str) and text.strip():
        return text
    parts = [
        next((each[key] for key in ("text", "fallback") if isinstance(each.get(key), str)), "")
        for each in map(as_mapping, as_list(message.get("attachments")))
        if not each.get("from_url")
    ]
    return "\n".join(filter(None, parts))


def add_message(
    gatherer: Gatherer, message: dict[str, Any], said_at: datetime, people: People
) -> None:
    kind = message.get("subtype")
    files = [as_mapping(file) for file in as_list(message.get("files"))]
    previews = sum("from_url" in as_mapping(a) for a in as_list(message.get("attachments")))
    if kind is not None and kind not in _SAID:
        gatherer.skip(NOTICE)
        return
    for what, count in (("file", len(files)), ("preview of a link", previews)):
        for _ in range(count):
            gatherer.leave_out(what)
    text = people.words_of(message)
    if (files or previews) and not text.strip():
        gatherer.skip(ONLY_FILES)
        return
    role: Role = "tool" if people.is_bot(message) else "user"
    name = as_id(message.get("ts")) or "~"
    kept_with = _beside(message, files, text)
    gatherer.add(name, role, text, said_at, people.speaker(message), kept_with)


def _beside(message: dict[str, Any], files: list[dict[str, Any]], text: str) -> dict[str, Any]:
    """Metadata: the raw text, files, the time of editing."""
    raw = raw_text(message)
    parts = {
        "text": raw if raw != text else None,
        "edited": as_mapping(message.get("edited")).get("ts"),
        "files": [label(file.get("name")) or as_id(file.get("id")) for file in files],
    }
    slack = {key: value for key, value in parts.items() if value}
    return {"slack": slack} if slack else {}
