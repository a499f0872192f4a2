"""The channels of Slack and Discord.

Slack's export has a folder per channel, a file per day, and lists of users and channels. A
channel's day is a conversation, and so is each thread, wherever its replies lie.

Discord's channels are as DiscordChatExporter writes them in JSON: a file of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from language.errors import BadImport
from language.transcripts import Role, Transcript
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Gatherer,
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
from palace.transfer.importers.json_stream import (
    LARGEST_ITEM,
    JsonReader,
    first_character,
    list_items,
)
from palace.transfer.importers.message_forms import unescaped

SLACK_SOURCE = "slack"

SLACK_NOTICE = "is Slack's own note of who came, left or changed something"
SLACK_ONLY_FILES = "holds no words, only files or previews"
# Message subtypes that people write; all others are notices.
_SAID = {"bot_message", "me_message", "thread_broadcast", "file_share", "file_comment"}
_SAID |= {"reply_broadcast", "slackbot_response", "huddle_thread"}
# <@U024BE7LH>, <#C024BE7LR|general>, <!here>, <https://example.org|a link>
_LINK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")
# The channel lists, and how each kind of channel is called.
_PLACES = {"channels.json": "#{}", "groups.json": "#{}", "mpims.json": "{}", "dms.json": "{}"}
_USERS = ("users.json", "org_users.json")
TITLE_LENGTH = 60


def is_slack(archive: Archive) -> bool:
    return any(name in archive.members for name in _USERS) and any(
        name in archive.members for name in _PLACES
    )


def slack_conversations(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    people = People(
        user for name in _USERS if name in archive.members for user in _listed(archive, name)
    )
    known = {place.folder: place for place in _places(archive, people)}
    for folder, names in _days(archive).items():
        place = known.get(folder) or _Place(folder, folder, folder)
        yield from _Reading(archive, names, place, people, latest).conversations()


SLACK_FORMAT = Format(
    SLACK_SOURCE,
    "Slack export",
    where="In Slack, for owners of a workspace: Settings → Workspace settings → "
    "Import/export data → Export. Give the zip as it is.",
    becomes="a channel's day (UTC), and each thread",
    skips="notices, messages without words, files, previews of links",
    is_archive=is_slack,
    of_archive=slack_conversations,
)


def _days(archive: Archive) -> dict[str, list[str]]:
    """The day files of each folder."""
    days: dict[str, list[str]] = {}
    for name in archive.members:
        if folder := _folder(name):
            days.setdefault(folder, []).append(name)
    return days


def _folder(name: str) -> str:
    """The date of a day file; empty for others."""
    folder, _, file = name.rpartition("/")
    return folder if file.endswith(".json") and "/" not in folder else ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A channel, a group or a direct conversation.

    Attributes:
        folder: The folder of its day files.
        key: Slack's permanent id; the name may change.
    """

    folder: str
    key: str
    title: str


def _places(archive: Archive, people: People) -> Iterator[_Place]:
    for file, form in _PLACES.items():
        for each in _listed(archive, file) if file in archive.members else ():
            fields = as_mapping(each)
            key = as_id(fields.get("id"))
            folder = label(fields.get("name")) or key
            if key:
                yield _Place(folder, key, form.format(_name(file, folder, fields, people)))


def _name(file: str, folder: str, fields: dict[str, Any], people: People) -> str:
    if file not in ("dms.json", "mpims.json"):
        return folder
    members = [people.name_of(each) for each in as_list(fields.get("members"))]
    return ", ".join(members) or folder


def _listed(archive: Archive, name: str) -> list[Any]:
    """A small JSON list, loaded completely."""
    with archive.part(name) as part:
        content = part.stream.read(LARGEST_ITEM + 1)
    try:
        listed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadImport(f"{name} is not valid JSON; nothing was imported.") from error
    if len(content) > LARGEST_ITEM or not isinstance(listed, list):
        raise BadImport(f"{name} is no list, as it is in Slack's exports; nothing was imported.")
    return listed


@dataclass(slots=True)
class _SlackConversation:
    """A conversation under construction."""

    title: str
    gatherer: Gatherer = field(default_factory=Gatherer)


class _Reading:
    """Reads the days of one channel in order; threads stay open until the end."""

    def __init__(
        self,
        archive: Archive,
        names: list[str],
        place: _Place,
        people: People,
        latest: datetime,
    ) -> None:
        self._archive = archive
        self._names = names
        self._place = place
        self._people = people
        self._latest = latest
        self._days: dict[str, _SlackConversation] = {}
        self._threads: dict[str, _SlackConversation] = {}

    def conversations(self) -> Iterator[Conversation]:
        for name in self._names:
            with self._archive.part(name) as part:
                if first_character(part):
                    for message in list_items(part):
                        self._add(message)
            # Our day may continue in the next file: Slack's days use another time zone.
            for day in sorted(self._days)[:-1]:
                yield self._done(day, self._days.pop(day))
        for key, conversation in [*self._days.items(), *self._threads.items()]:
            yield self._done(key, conversation)

    def _add(self, message: Any) -> None:
        fields = as_mapping(message)
        said_at = slack_time(fields.get("ts")) or self._latest
        conversation = self._conversation_of(fields, said_at)
        if fields.get("type", "message") != "message":
            conversation.gatherer.skip(UNKNOWN_FORM)
        else:
            add_message(conversation.gatherer, fields, said_at, self._people)

    def _conversation_of(self, fields: dict[str, Any], said_at: datetime) -> _SlackConversation:
        thread = as_id(fields.get("thread_ts"))
        if thread:
            begins = self._people.words_of(fields)[:TITLE_LENGTH]
            conversation = self._threads.setdefault(thread, _SlackConversation(self._place.title))
            if thread == fields.get("ts"):
                conversation.title = f"{self._place.title}: {begins}"
            return conversation
        day = said_at.date().isoformat()
        return self._days.setdefault(day, _SlackConversation(f"{self._place.title}, {day}"))

    def _done(self, key: str, conversation: _SlackConversation) -> Conversation:
        # A reply may lie in an earlier file than the one before it.
        turns = sorted(conversation.gatherer.take_turns(), key=lambda turn: turn.said_at)
        name = as_id(f"{self._place.key}/{key}")
        return conversation.gatherer.conversation(
            Transcript(SLACK_SOURCE, name, label(conversation.title), tuple(turns))
        )


def slack_time(value: object) -> datetime | None:
    """Parse Slack's timestamps: Unix times as text."""
    try:
        return as_time(float(value)) if isinstance(value, str) else as_time(value)
    except ValueError:
        return None


class People:
    """Users' names by id; unlisted users go by their id."""

    def __init__(self, users: Iterable[Any]) -> None:
        self._names: dict[str, str] = {}
        self._bots: set[str] = set()
        for user in map(as_mapping, users):
            key = as_id(user.get("id"))
            self._names[key] = _user_name(user) or key
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
        return named or _user_name({"profile": own}) or bot or as_id(message.get("user"))

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


def _user_name(user: dict[str, Any]) -> str:
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
        gatherer.skip(SLACK_NOTICE)
        return
    for what, count in (("file", len(files)), ("preview of a link", previews)):
        for _ in range(count):
            gatherer.leave_out(what)
    text = people.words_of(message)
    if (files or previews) and not text.strip():
        gatherer.skip(SLACK_ONLY_FILES)
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


DISCORD_SOURCE = "discord"
DISCORD_NOTICE = "is Discord's own note of who came, called or changed something"
DISCORD_ONLY_FILES = "holds no words, only files, stickers or previews"
_NOTICES = {
    *("RecipientAdd", "RecipientRemove", "Call", "ChannelNameChange", "ChannelIconChange"),
    *("ChannelPinnedMessage", "GuildMemberJoin", "ThreadCreated", "UserPremiumGuildSubscription"),
}
_PIECES = (("attachments", "file"), ("stickers", "sticker"), ("embeds", "preview of a link"))


def _is_discord(head: Head) -> bool:
    fields = as_mapping(head.value)
    return not head.is_listed and "id" in as_mapping(fields.get("channel")) and "guild" in fields


def discord_conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times. The channel comes before its messages."""
    reader, about = JsonReader(part), dict[str, Any]()
    for key in reader.fields():
        if key == "messages" and reader.peek() == "[":
            channel = as_mapping(about.get("channel"))
            chat = as_id(channel.get("id")) or derived_id(channel.get("name"))
            yield from days_of_chat(DISCORD_SOURCE, chat, _title(about), _messages(reader, latest))
        else:
            about[key] = reader.value()
    if reader.peek():
        reader.fail("goes on after its object has ended")


DISCORD_FORMAT = Format(
    DISCORD_SOURCE,
    "Discord export",
    where="Discord's own export has only what you wrote; export a channel with "
    "DiscordChatExporter, as JSON. Give the file, or a zip or folder of several.",
    becomes="a channel's day (UTC)",
    skips="notices, messages without words, files, stickers, previews of links",
    recognises=_is_discord,
    members=named(r".+\.json"),
    is_loose=True,
    conversations=discord_conversations,
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
        return DISCORD_NOTICE
    if not isinstance(text, str):
        return UNKNOWN_FORM
    return DISCORD_ONLY_FILES if has_pieces and not text.strip() else ""
