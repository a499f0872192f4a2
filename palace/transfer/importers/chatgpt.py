"""ChatGPT's data export: a list of conversations, each a tree of messages called `mapping`.

The path from `current_node` up to the root is the conversation as one sees it; what was regenerated
or edited away is on other branches, and is imported too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from language.transcripts import Transcript, Turn
from palace.transfer.importers.chatgpt_messages import add_message
from palace.transfer.importers.conversation import (
    Conversation,
    Gatherer,
    as_id,
    as_mapping,
    as_time,
    branch_id,
    derived_id,
    label,
)
from palace.transfer.importers.files import Part
from palace.transfer.importers.json_stream import list_items
from palace.transfer.importers.shape import conversation_object

SOURCE = "chatgpt"
MESSAGES = "mapping"
OTHER_BRANCH = "another branch"


def conversations(part: Part, latest: datetime) -> Iterator[Conversation]:
    """`latest` replaces missing times."""
    for number, item in enumerate(list_items(part), start=1):
        raw = conversation_object(item, MESSAGES, dict, number, part.name)
        yield _Tree(raw, latest).conversation()


class _Tree:
    def __init__(self, raw: dict[str, Any], latest: datetime) -> None:
        nodes = as_mapping(raw.get(MESSAGES))
        self._raw = raw
        self._messages = {key: as_mapping(node).get("message") for key, node in nodes.items()}
        self._parents = {key: _parent(node, nodes) for key, node in nodes.items()}
        self._used: set[str] = set()
        self._times: dict[str, datetime] = {}
        self._gatherer = Gatherer()
        self._start = self._starts_at(latest)

    def conversation(self) -> Conversation:
        main_path = self._unused_path(self._current_node())
        external_id = self._conversation_id(main_path)
        title = label(self._raw.get("title"))
        transcript = Transcript(SOURCE, external_id, title, self._turns_of(main_path))
        branches = [
            Transcript(
                SOURCE,
                branch_id(external_id, turns[-1].external_id),
                f"{title} ({OTHER_BRANCH})".lstrip(),
                turns,
            )
            for turns in self._branches()
        ]
        return self._gatherer.conversation(transcript, tuple(branches))

    def _branches(self) -> Iterator[tuple[Turn, ...]]:
        """The turns of each other branch that has any, in the order of their leaves.

        Visiting all nodes also finds cycles without a leaf, which valid trees do not have.
        """
        parents = set(self._parents.values())
        leaves = [node_id for node_id in self._parents if node_id not in parents]
        for node_id in [*leaves, *self._parents]:
            if turns := self._turns_of(self._unused_path(node_id)):
                yield turns

    def _turns_of(self, path: list[str]) -> tuple[Turn, ...]:
        """The turns of a stretch of the tree, oldest first."""
        for node_id in path:
            message = self._messages[node_id]
            said_at = _message_time(message) or self._time_before(node_id)
            self._used.add(node_id)
            self._times[node_id] = said_at
            if message is not None:
                add_message(self._gatherer, node_id, message, said_at)
        return self._gatherer.take_turns()

    def _unused_path(self, node_id: str | None) -> list[str]:
        """The path from the oldest unused ancestor to the node; stops at cycles."""
        path: dict[str, None] = {}
        while node_id is not None and node_id not in self._used and node_id not in path:
            path[node_id] = None
            node_id = self._parents[node_id]
        return list(path)[::-1]

    def _current_node(self) -> str | None:
        """The default current node: always follow the last child."""
        current = self._raw.get("current_node")
        if isinstance(current, str) and current in self._messages:
            return current
        last_child = {parent: node_id for node_id, parent in self._parents.items()}
        seen: set[str | None] = set()
        node_id = None
        while node_id in last_child and node_id not in seen:
            seen.add(node_id)
            node_id = last_child[node_id]
        return node_id

    def _conversation_id(self, main_path: list[str]) -> str:
        """The conversation's id; the earliest exports have none, so use the first message's."""
        own = as_id(self._raw.get("conversation_id")) or as_id(self._raw.get("id"))
        spoken = (node_id for node_id in main_path if self._messages[node_id] is not None)
        return own or derived_id(self._raw.get("create_time"), next(spoken, None))

    def _time_before(self, node_id: str) -> datetime:
        return self._times.get(self._parents[node_id] or "", self._start)

    def _starts_at(self, latest: datetime) -> datetime:
        known = [_message_time(message) for message in self._messages.values()]
        created = as_time(self._raw.get("create_time"))
        return created or min((time for time in known if time), default=latest)


def _parent(node: Any, nodes: dict[str, Any]) -> str | None:
    parent = as_mapping(node).get("parent")
    return parent if isinstance(parent, str) and parent in nodes else None


def _message_time(message: Any) -> datetime | None:
    fields = as_mapping(message)
    return as_time(fields.get("create_time")) or as_time(fields.get("update_time"))
