"""Conversations that are trees: regenerated answers and edited questions are other branches.

The path from the current message up to the root is the conversation as its program shows it. The
other branches are imported too, each with the messages that are on no branch before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from language.transcripts import Transcript, Turn
from palace.transfer.importers.conversation import Conversation, Gatherer, as_mapping, branch_id

OTHER_BRANCH = "another branch"


def parent_of(node: Any, key: str = "parent") -> str | None:
    """The id of the parent that a node of an export names; None if it names none."""
    parent = as_mapping(node).get(key)
    return parent if isinstance(parent, str) else None


class MessageTree:
    """Paths through messages, by their ids.

    Args:
        parents: Each message's parent; None for one without.
        current: The last message that is shown; otherwise the last child of the last child…
    """

    def __init__(self, parents: Mapping[str, str | None], current: object) -> None:
        self._parents = {
            key: parent if parent in parents else None for key, parent in parents.items()
        }
        self._current = current if isinstance(current, str) else None
        self._used: set[str] = set()

    def paths(self) -> Iterator[list[str]]:
        """The path that is shown, then each other stretch, oldest message first.

        Visiting all messages also finds cycles without a leaf, which valid trees do not have.
        """
        yield self._unused_path(self._leaf())
        inner = set(self._parents.values())
        leaves = [key for key in self._parents if key not in inner]
        for key in [*leaves, *self._parents]:
            if path := self._unused_path(key):
                yield path

    def parent(self, key: str) -> str | None:
        return self._parents[key]

    def _unused_path(self, key: str | None) -> list[str]:
        """The path from the oldest unused ancestor to the message; stops at cycles."""
        path: dict[str, None] = {}
        while key is not None and key not in self._used and key not in path:
            path[key] = None
            key = self._parents[key]
        self._used.update(path)
        return list(path)[::-1]

    def _leaf(self) -> str | None:
        if self._current in self._parents:
            return self._current
        last_child = {parent: key for key, parent in self._parents.items()}
        seen: set[str | None] = set()
        key = None
        while key in last_child and key not in seen:
            seen.add(key)
            key = last_child[key]
        return key


@dataclass(frozen=True, slots=True)
class TreeReader:
    """Reads the messages of a tree.

    Attributes:
        start: The time of messages without a time that have no parent.
        time_of: A message's own time, by its id; without one it has that of its parent.
        add: Gives a message and its time to the gatherer.
    """

    tree: MessageTree
    gatherer: Gatherer
    start: datetime
    time_of: Callable[[str], datetime | None]
    add: Callable[[str, datetime], None]
    _times: dict[str, datetime] = field(default_factory=dict)

    def conversation(
        self, source: str, title: str, name: Callable[[list[str]], str]
    ) -> Conversation:
        """The conversation and its other branches.

        Args:
            name: The conversation's id, given the ids of the messages that are shown.
        """
        shown, *others = self.tree.paths()
        external_id = name(shown)
        transcript = Transcript(source, external_id, title, self._turns_of(shown))
        branches = [
            Transcript(
                source,
                branch_id(external_id, turns[-1].external_id),
                f"{title} ({OTHER_BRANCH})".lstrip(),
                turns,
            )
            for turns in map(self._turns_of, others)
            if turns
        ]
        return self.gatherer.conversation(transcript, tuple(branches))

    def _turns_of(self, path: list[str]) -> tuple[Turn, ...]:
        for key in path:
            before = self._times.get(self.tree.parent(key) or "", self.start)
            self._times[key] = self.time_of(key) or before
            self.add(key, self._times[key])
        return self.gatherer.take_turns()
