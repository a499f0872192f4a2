"""The ledger: items already in a conversation's prompt, so that none is injected twice."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import cast

from django.conf import settings

from language.errors import BadInput
from language.storable import ID_LENGTH, is_storable
from palace.models import Palace
from palace.working.redis_keys import answering, key

# The default mark.
INJECTED = "injected"
# Keys that Redis looks through at once.
BATCH = 500

# An older turn never overwrites a newer mark, nor removes an item that was marked again, so that a
# late writer, such as a stopped reply, changes nothing. KEYS: the hash. ARGV: its lifetime in
# seconds, the number of items to remove, the name and mark of each, and the name, turn (-1 if none)
# and mark of each new item.
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
class LedgerEntry:
    """An item in the prompt.

    Attributes:
        item: `drawer:` or `fact:` with its id; or any name, such as that of a skill.
        value: The caller's mark.
        digest: SHA-256 of its text in hexadecimal; a changed text is another item.
        version: The version that was shown, if the item has versions.
        turn: The message it was given with, from 0; without one it stays until evicted.
        span: Start and end of the excerpt that was shown; None if all was.
        told: The note shown with it, such as its dates.
        place: Its rank among the items of that message, best first, from 0.
    """

    item: str
    value: str = INJECTED
    digest: str = ""
    version: str = ""
    turn: int | None = None
    span: tuple[int, int] | None = None
    told: str = ""
    place: int = 0

    def is_same(self, other: LedgerEntry) -> bool:
        """Whether both are the same text of the same item."""
        return (self.item, self.digest, self.version) == (other.item, other.digest, other.version)

    def is_within(self, since: int, turn: int) -> bool:
        """Whether it is in the prompt at `turn` of a model that reads from message `since` on.

        Items marked at that turn itself belong to an attempt that is being repeated.
        """
        return self.turn is None or since <= self.turn < turn


class Ledger:
    """The ledger of one conversation: a Redis hash with the lifetime of working memory.

    Every method is atomic and raises `WorkingMemoryAway` if Redis does not respond.
    """

    def __init__(self, palace: Palace, conversation: str) -> None:
        """
        Raises:
            BadInput: the conversation's id is empty, too long, or cannot be stored.
        """
        self._key = key(palace, "ledger", _named("conversation's id", conversation))

    def get(self) -> dict[str, LedgerEntry]:
        """All entries by item; this renews their expiry."""
        with answering() as client, client.pipeline(transaction=False) as pipe:
            pipe.hgetall(self._key)
            pipe.expire(self._key, _kept_s())
            stored = cast(dict[str, str], pipe.execute()[0])
        return {item: _read(item, mark) for item, mark in stored.items()}

    def check(self, item: str) -> LedgerEntry | None:
        """The item's entry, if it is marked."""
        with answering() as client:
            mark = cast(str | None, client.hget(self._key, item))
        return None if mark is None else _read(item, mark)

    def mark(self, *entries: LedgerEntry) -> None:
        """Mark these items as in the prompt; idempotent.

        Raises:
            BadInput: an item's name or mark is empty, too long, or cannot be stored.
        """
        self.change(marked=entries)

    def change(
        self, *, marked: Collection[LedgerEntry] = (), gone: Collection[LedgerEntry] = ()
    ) -> None:
        """Mark some items and remove others, atomically.

        Args:
            gone: Entries to remove, as they were read; one that was marked again since stays.
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
        """Remove these marks, so that the items can be injected again; returns their number."""
        named = list(items)
        if not named:
            return 0
        with answering() as client:
            return client.hdel(self._key, *named)

    def clear(self) -> None:
        """Delete the ledger."""
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


def within(entries: Mapping[str, LedgerEntry], since: int, turn: int) -> dict[str, LedgerEntry]:
    """The entries in the prompt at `turn` of a model that reads from message `since` on."""
    return {item: entry for item, entry in entries.items() if entry.is_within(since, turn)}


def _kept_s() -> int:
    return max(1, int(settings.WORKING_MEMORY_TTL_S))


def _named(what: str, name: str) -> str:
    if not name.strip() or len(name) > ID_LENGTH or not is_storable(name):
        raise BadInput(
            f"The {what} must be 1 to {ID_LENGTH} characters long, without NUL and halves of pairs."
        )
    return name


def _written(entry: LedgerEntry) -> str:
    """A canonical form: equal entries have equal texts."""
    fields = asdict(entry)
    del fields["item"]
    return json.dumps(fields, sort_keys=True)


def _read(item: str, mark: str) -> LedgerEntry:
    fields = json.loads(mark)
    span = fields.pop("span", None)
    return LedgerEntry(item, span=tuple(span) if span else None, **fields)
