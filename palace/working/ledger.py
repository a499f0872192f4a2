"""The ledger: what was put before a conversation's model, so that it is not put there twice."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import cast

from django.conf import settings

from palace.errors import BadInput
from palace.models import Palace
from palace.storable import ID_LENGTH, is_storable
from palace.working.connection import answering, key

# What an item is marked with where nothing else is said.
INJECTED = "injected"
# Keys that Redis looks through at once.
BATCH = 500

# An item is not marked over by an older turn, nor taken out once it was marked anew: somebody who
# comes late, such as a reply that was stopped, changes nothing of what came after. KEYS: the hash.
# ARGV: seconds to keep it, how many items go, of each its name and what it was marked with, and of
# each new one its name, turn (-1 where it has none) and mark.
_CHANGE = """
local gone = tonumber(ARGV[2])
for at = 3, 2 + 2 * gone, 2 do
  if redis.call('HGET', KEYS[1], ARGV[at]) == ARGV[at + 1] then
    redis.call('HDEL', KEYS[1], ARGV[at])
  end
end
for at = 3 + 2 * gone, #ARGV, 3 do
  local held = redis.call('HGET', KEYS[1], ARGV[at])
  local turn = held and cjson.decode(held)['turn']
  local new = tonumber(ARGV[at + 1])
  if type(turn) ~= 'number' or new < 0 or turn <= new then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 2])
  end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An item that was put before the model.

    Attributes:
        item: `drawer:` or `fact:` with its id; or any name, such as that of a skill.
        value: What it was marked with by whoever named it.
        digest: Of its words, SHA-256 in hexadecimal; other words are something else.
        version: Which of its versions it was, where it has such.
        turn: The message it was put before, counted from 0; without one it stays until it is
            evicted.
        span: Start and end of the stretch that was shown; None where it was all of it.
        told: What was said of it besides, such as when it held.
        place: Among what was given with that message, the best first, from 0.
    """

    item: str
    value: str = INJECTED
    digest: str = ""
    version: str = ""
    turn: int | None = None
    span: tuple[int, int] | None = None
    told: str = ""
    place: int = 0

    def is_same(self, other: Entry) -> bool:
        """Whether both stand for the same words of the same thing."""
        return (self.item, self.digest, self.version) == (other.item, other.digest, other.version)

    def is_within(self, since: int, turn: int) -> bool:
        """Whether a model that reads from message `since` on has it before it at `turn`.

        What was marked at that turn itself belongs to a reply that is being tried again.
        """
        return self.turn is None or since <= self.turn < turn


class Ledger:
    """Of one conversation of a palace. A hash in Redis, kept as long as working memory is.

    Every method raises `WorkingMemoryAway` where Redis does not answer, and does all or nothing.
    """

    def __init__(self, palace: Palace, conversation: str) -> None:
        """
        Raises:
            BadInput: the conversation's id is empty, too long, or cannot be stored.
        """
        self._key = key(palace, "ledger", _named("conversation's id", conversation))

    def get(self) -> dict[str, Entry]:
        """All entries, by item, which are kept on for it."""
        with answering() as client, client.pipeline(transaction=False) as pipe:
            pipe.hgetall(self._key)
            pipe.expire(self._key, _kept_s())
            stored = cast(dict[str, str], pipe.execute()[0])
        return {item: _read(item, mark) for item, mark in stored.items()}

    def check(self, item: str) -> Entry | None:
        """Its entry, if it is marked."""
        with answering() as client:
            mark = cast(str | None, client.hget(self._key, item))
        return None if mark is None else _read(item, mark)

    def mark(self, *entries: Entry) -> None:
        """Note that these were put before the model; safe to repeat.

        Raises:
            BadInput: an item's name or mark is empty, too long, or cannot be stored.
        """
        self.change(marked=entries)

    def change(self, *, marked: Collection[Entry] = (), gone: Collection[Entry] = ()) -> None:
        """Mark some and take others out, at once.

        Args:
            gone: As they were read. One that has been marked anew since stays.
        """
        arguments: list[str | int] = [_kept_s(), len(gone)]
        for entry in gone:
            arguments += [entry.item, _written(entry)]
        for entry in marked:
            _named("item's mark", entry.value)
            turn = -1 if entry.turn is None else entry.turn
            arguments += [_named("item's name", entry.item), turn, _written(entry)]
        if gone or marked:
            with answering() as client:
                client.eval(_CHANGE, 1, self._key, *arguments)

    def evict(self, items: Iterable[str]) -> int:
        """Let these be put before the model again; how many of them were marked."""
        named = list(items)
        if not named:
            return 0
        with answering() as client:
            return client.hdel(self._key, *named)

    def clear(self) -> None:
        """Forget all of it."""
        with answering() as client:
            client.delete(self._key)


def all_items(palace: Palace) -> Iterator[str]:
    """The items that are marked in any conversation of the palace.

    Raises:
        WorkingMemoryAway: Redis does not answer.
    """
    with answering() as client:
        for name in client.scan_iter(match=key(palace, "ledger", "*"), count=BATCH):
            yield from cast(list[str], client.hkeys(name))


def within(entries: Mapping[str, Entry], since: int, turn: int) -> dict[str, Entry]:
    """Those a model has before it at `turn` that reads from message `since` on."""
    return {item: entry for item, entry in entries.items() if entry.is_within(since, turn)}


def _kept_s() -> int:
    return max(1, int(settings.WORKING_MEMORY_TTL_S))


def _named(what: str, name: str) -> str:
    if not name.strip() or len(name) > ID_LENGTH or not is_storable(name):
        raise BadInput(
            f"The {what} must be 1 to {ID_LENGTH} characters long, without NUL and halves of pairs."
        )
    return name


def _written(entry: Entry) -> str:
    """The same for the same, so that two can be compared as they are."""
    fields = asdict(entry)
    del fields["item"]
    return json.dumps(fields, sort_keys=True)


def _read(item: str, mark: str) -> Entry:
    fields = json.loads(mark)
    span = fields.pop("span", None)
    return Entry(item, span=tuple(span) if span else None, **fields)
