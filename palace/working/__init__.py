"""Working memory: entries and fields in Redis, short-lived, which expire by themselves.

Others import from here what entries and fields need; `ledger` and `redis_keys` stand alone. Entries
lie under paths. A conversation's fields, below, are JSON values by name, which expire together when
unused. A field with an empty name, which callers cannot use, stores the requested lifetime in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings

from language.errors import BadInput, TooMuch
from palace.models import Palace
from palace.working.entries import (
    DEFAULT_LIMIT,
    Entry,
    delete_entry,
    entries_in,
    entries_under,
    get_entry,
    inventory,
    namespaces,
    search_entries,
    set_entry,
    time_left,
)
from palace.working.redis_keys import (
    NAMESPACE_KINDS,
    Namespace,
    answering,
    json_of,
    key,
    name_of,
    now_ms,
    prefix_of,
    read_json,
    ttl_ms_of,
)

__all__ = [
    "DEFAULT_LIMIT",
    "ENTITIES",
    "MOST_FIELDS_BYTES",
    "NAMESPACE_KINDS",
    "SCRATCHPAD",
    "ConversationFields",
    "Entry",
    "Namespace",
    "delete_entry",
    "delete_fields",
    "entries_in",
    "entries_under",
    "get_entry",
    "get_field",
    "get_fields",
    "inventory",
    "list_conversations",
    "name_of",
    "namespaces",
    "peek_conversation",
    "prefix_of",
    "put_fields",
    "search_entries",
    "set_entry",
    "time_left",
]

# The total size of names and JSON values, in UTF-8.
MOST_FIELDS_BYTES = 64 * 1024

SCRATCHPAD, ENTITIES = "scratchpad", "entities"
# The required types of these fields.
_ALLOWED_TYPES: dict[str, tuple[type, ...]] = {SCRATCHPAD: (str,), ENTITIES: (list, tuple)}

# Common to the scripts: KEYS are the fields, and the palace's conversations by expiry time.
# `keep` renews the expiry; ARGV: the conversation, the default lifetime.
_KEEP = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function keep()
  local ttl = redis.call('HGET', KEYS[1], '') or ARGV[2]
  if redis.call('PEXPIREAT', KEYS[1], now + ttl) == 1 then
    redis.call('ZADD', KEYS[2], now + ttl, ARGV[1])
  else
    redis.call('ZREM', KEYS[2], ARGV[1])
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if last[2] then redis.call('PEXPIREAT', KEYS[2], last[2]) end
end
"""
_GET = f"""{_KEEP}
keep()
return redis.call('HGETALL', KEYS[1])
"""
# Further ARGV: the maximum size, the requested lifetime (or nothing), names and values. Returns the
# resulting size if it is too large, else 0.
_PUT = f"""{_KEEP}
local new, size = {{}}, 0
for at = 5, #ARGV, 2 do
  new[ARGV[at]] = true
  size = size + #ARGV[at] + #ARGV[at + 1]
end
local held = redis.call('HGETALL', KEYS[1])
for at = 1, #held, 2 do
  if held[at] ~= '' and not new[held[at]] then size = size + #held[at] + #held[at + 1] end
end
if size > tonumber(ARGV[3]) then return size end
for at = 5, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], '', ARGV[4])
end
keep()
return 0
"""
# ARGV: the conversation, then names; without names, delete all. Returns the number of deleted ones.
_DELETE = """
local gone = 0
for at = 2, #ARGV do gone = gone + redis.call('HDEL', KEYS[1], ARGV[at]) end
if #ARGV == 1 then
  gone = redis.call('HLEN', KEYS[1]) - redis.call('HEXISTS', KEYS[1], '')
  redis.call('DEL', KEYS[1])
elseif redis.call('HLEN', KEYS[1]) == redis.call('HEXISTS', KEYS[1], '') then
  redis.call('DEL', KEYS[1])
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('ZREM', KEYS[2], ARGV[1]) end
return gone
"""


@dataclass(frozen=True, slots=True)
class ConversationFields:
    """A conversation that has fields.

    Attributes:
        fields: By name, sorted.
        size: The total size in bytes.
    """

    conversation: str
    fields: dict[str, Any]
    size: int
    expires_at: datetime


def get_fields(palace: Palace, conversation: str) -> dict[str, Any]:
    """All fields, sorted by name; this renews their expiry.

    Raises:
        BadInput: the conversation's id is invalid; WorkingMemoryAway: Redis does not respond.
    """
    keys = _keys(palace, name_of("A conversation", conversation))
    with answering() as redis:
        flat = redis.eval(_GET, 2, *keys, conversation, _usual_ttl_ms())
    return _read(cast(list[str], flat))


def get_field(palace: Palace, conversation: str, name: str, default: Any = None) -> Any:
    """One field, or the default if missing; errors as `get_fields`."""
    return get_fields(palace, conversation).get(name_of("A field", name), default)


def put_fields(
    palace: Palace,
    conversation: str,
    fields: Mapping[str, Any],
    *,
    ttl_seconds: float | None = None,
) -> None:
    """Set these fields and leave the others; this renews the expiry of all.

    Args:
        fields: JSON values by name; `scratchpad` is text, `entities` a list.
        ttl_seconds: Lifetime of all fields after each use from now on; no effect without fields.

    Raises:
        BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
        TooMuch: the fields would be larger than allowed; nothing is stored.
    """
    keys = _keys(palace, name_of("A conversation", conversation))
    ttl_ms = "" if ttl_seconds is None else ttl_ms_of(ttl_seconds)
    flat = _written(fields)
    with answering() as redis:
        size = redis.eval(
            _PUT, 2, *keys, conversation, _usual_ttl_ms(), MOST_FIELDS_BYTES, ttl_ms, *flat
        )
    if size:
        raise _too_much(cast(int, size))


def delete_fields(palace: Palace, conversation: str, names: Iterable[str] | None = None) -> int:
    """Delete these fields, or all of the conversation; returns their number.

    Raises:
        BadInput: a name is invalid; WorkingMemoryAway: Redis does not respond.
    """
    keys = _keys(palace, name_of("A conversation", conversation))
    named = None if names is None else [name_of("A field", name) for name in names]
    if named == []:
        return 0
    with answering() as redis:
        return cast(int, redis.eval(_DELETE, 2, *keys, conversation, *(named or ())))


def list_conversations(palace: Palace, *, limit: int) -> tuple[list[ConversationFields], int]:
    """The conversations with the latest expiry, and the number of all conversations.

    Does not renew their expiry.

    Raises:
        WorkingMemoryAway: Redis does not respond.
    """
    with answering() as redis:
        index = key(palace, "conversations")
        now = now_ms(redis)
        total = redis.zcount(index, f"({now}", "+inf")
        ends: Any = redis.zrevrangebyscore(
            index, "+inf", f"({now}", start=0, num=limit, withscores=True
        )
        with redis.pipeline(transaction=False) as pipe:
            for conversation, _ in ends:
                pipe.hgetall(_keys(palace, conversation)[0])
            found = pipe.execute()
    return [
        _conversation_fields(end, flat) for end, flat in zip(ends, found, strict=True) if flat
    ], total


def peek_conversation(palace: Palace, conversation: str) -> ConversationFields | None:
    """A conversation as listed by `list_conversations`; None if it has no fields.

    Raises:
        BadInput: the conversation's id is invalid; WorkingMemoryAway: Redis does not respond.
    """
    names = _keys(palace, name_of("A conversation", conversation))
    with answering() as redis:
        end, stored = redis.zscore(names[1], conversation), redis.hgetall(names[0])
    return (
        _conversation_fields((conversation, end), cast(dict[str, str], stored))
        if end and stored
        else None
    )


def _conversation_fields(end: tuple[str, float], stored: dict[str, str]) -> ConversationFields:
    written = {name: value for name, value in stored.items() if name}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in written.items())
    fields = {name: read_json(written[name]) for name in sorted(written)}
    return ConversationFields(end[0], fields, size, datetime.fromtimestamp(end[1] / 1000, UTC))


def _keys(palace: Palace, conversation: str) -> tuple[str, str]:
    return key(palace, "conversation", conversation), key(palace, "conversations")


def _usual_ttl_ms() -> int:
    return int(settings.WORKING_MEMORY_TTL_S * 1000)


def _written(fields: object) -> list[str]:
    """Names and values, alternating."""
    if not isinstance(fields, Mapping):
        raise BadInput("fields is an object: values by name.")
    flat, size = [], 0
    for name, value in fields.items():
        if name in _ALLOWED_TYPES and not isinstance(value, _ALLOWED_TYPES[name]):
            raise BadInput(f"The field {SCRATCHPAD} holds text, the field {ENTITIES} a list.")
        flat += [name_of("A field", name), json_of(f"The field {name}", value)]
        size += len(flat[-2].encode()) + len(flat[-1].encode())
    if size > MOST_FIELDS_BYTES:
        raise _too_much(size)
    return flat


def _read(flat: list[str]) -> dict[str, Any]:
    stored = dict(zip(flat[::2], flat[1::2], strict=True))
    return {name: read_json(stored[name]) for name in sorted(stored) if name}


def _too_much(size: int) -> TooMuch:
    return TooMuch(
        f"A conversation's fields have up to {MOST_FIELDS_BYTES // 1024} KB, and would have "
        f"{size:,} bytes. Nothing was put; delete some, or put less."
    )
