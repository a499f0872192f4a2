"""Slack's export: a folder per channel, a file per day, and lists of users and channels.

A channel's day is a conversation, and so is each thread, wherever its replies lie.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from language.transcripts import Transcript
from palace.errors import BadImport
from palace.transfer.importers.conversation import (
    UNKNOWN_FORM,
    Conversation,
    Gatherer,
    as_id,
    as_list,
    as_mapping,
    as_time,
    label,
)
from palace.transfer.importers.files import Archive
from palace.transfer.importers.json_stream import LARGEST_ITEM, first_character, list_items
from palace.transfer.importers.slack_messages import People, add_message

SOURCE = "slack"

# The channel lists, and how each kind of channel is called.
_PLACES = {"channels.json": "#{}", "groups.json": "#{}", "mpims.json": "{}", "dms.json": "{}"}
_USERS = ("users.json", "org_users.json")
TITLE_LENGTH = 60


def is_slack(archive: Archive) -> bool:
    return any(name in archive.members for name in _USERS) and any(
        name in archive.members for name in _PLACES
    )


def conversations(archive: Archive, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    people = People(
        user for name in _USERS if name in archive.members for user in _listed(archive, name)
    )
    known = {place.folder: place for place in _places(archive, people)}
    for folder, names in _days(archive).items():
        place = known.get(folder) or _Place(folder, folder, folder)
        yield from _Reading(archive, names, place, people, latest).conversations()


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
            Transcript(SOURCE, name, label(conversation.title), tuple(turns))
        )


def slack_time(value: object) -> datetime | None:
    """Parse Slack's timestamps: Unix times as text."""
    try:
        return as_time(float(value)) if isinstance(value, str) else as_time(value)
    except ValueError:
        return None
