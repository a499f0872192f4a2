"""What is noted of a conversation: named fields of JSON, which go together when nobody uses them.

A field with an empty name, which none of the caller's has, holds the time the caller has asked
for, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings

from palace.errors import BadInput
from palace.models import Palace
from palace.working.connection import answering, key, now_ms
from palace.working.errors import TooMuch
from palace.working.names import json_of, name_of, read_json, ttl_ms_of

# Names and values as JSON, in UTF-8.
MOST_BYTES = 64 * 1024

SCRATCHPAD, ENTITIES = "scratchpad", "entities"
# What these fields always hold.
_HELD_BY: dict[str, tuple[type, ...]] = {SCRATCHPAD: (str,), ENTITIES: (list, tuple)}

# Of all three scripts: KEYS are the fields, and the palace's conversations by when they end.
# `keep` begins their time anew; ARGV: the conversation, the usual time.
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
# ARGV goes on with the most bytes, the time asked for (or nothing), and names with values. Returns
# the bytes there would be, if they are too many, else 0.
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
# ARGV: the conversation, then names; without any, all go. Returns how many there were.
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
class Held:
    """A conversation of which something is noted.

    Attributes:
        fields: By name, in its order.
        size: Of all of them, in bytes.
    """

    conversation: str
    fields: dict[str, Any]
    size: int
    expires_at: datetime


def get_fields(palace: Palace, conversation: str) -> dict[str, Any]:
    """All fields, in the order of their names; none where nothing is noted. Their time begins anew.

    Raises:
        BadInput: it is no conversation's id; WorkingMemoryAway: Redis does not answer.
    """
    keys = _keys(palace, name_of("A conversation", conversation))
    with answering() as redis:
        flat = redis.eval(_GET, 2, *keys, conversation, _usual_ttl_ms())
    return _read(cast(list[str], flat))


def get_field(palace: Palace, conversation: str, name: str, default: Any = None) -> Any:
    """One field, or the default where there is none of this name; errors as `get_fields`."""
    return get_fields(palace, conversation).get(name_of("A field", name), default)


def put_fields(
    palace: Palace,
    conversation: str,
    fields: Mapping[str, Any],
    *,
    ttl_seconds: float | None = None,
) -> None:
    """Set these fields and leave the others; the time of all of them begins anew.

    Args:
        fields: Whatever JSON can write, by name; `scratchpad` is text, `entities` a list.
        ttl_seconds: How long the conversation's fields are kept after each use from now on; where
            it has no fields, there is nothing to keep.

    Raises:
        BadInput: an argument cannot be used; WorkingMemoryAway: Redis does not answer.
        TooMuch: the fields would be larger than a conversation's may be; nothing is put.
    """
    keys = _keys(palace, name_of("A conversation", conversation))
    asked = "" if ttl_seconds is None else ttl_ms_of(ttl_seconds)
    flat = _written(fields)
    with answering() as redis:
        size = redis.eval(_PUT, 2, *keys, conversation, _usual_ttl_ms(), MOST_BYTES, asked, *flat)
    if size:
        raise _too_much(cast(int, size))


def delete_fields(palace: Palace, conversation: str, names: Iterable[str] | None = None) -> int:
    """Delete these fields, or all of the conversation; returns how many there were.

    Raises:
        BadInput: it is no name; WorkingMemoryAway: Redis does not answer.
    """
    keys = _keys(palace, name_of("A conversation", conversation))
    named = None if names is None else [name_of("A field", name) for name in names]
    if named == []:
        return 0
    with answering() as redis:
        return cast(int, redis.eval(_DELETE, 2, *keys, conversation, *(named or ())))


def held_fields(palace: Palace, *, limit: int) -> tuple[list[Held], int]:
    """The conversations used last, by their time to end, and how many there are.

    To look is no use: their time goes on.

    Raises:
        WorkingMemoryAway: Redis does not answer.
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
    return [_held(end, flat) for end, flat in zip(ends, found, strict=True) if flat], total


def peek_fields(palace: Palace, conversation: str) -> Held | None:
    """A conversation as `held_fields` shows it; None where nothing is noted of it.

    Raises:
        BadInput: it is no conversation's id; WorkingMemoryAway: Redis does not answer.
    """
    names = _keys(palace, name_of("A conversation", conversation))
    with answering() as redis:
        end, held = redis.zscore(names[1], conversation), redis.hgetall(names[0])
    return _held((conversation, end), cast(dict[str, str], held)) if end and held else None


def _held(end: tuple[str, float], held: dict[str, str]) -> Held:
    written = {name: value for name, value in held.items() if name}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in written.items())
    fields = {name: read_json(written[name]) for name in sorted(written)}
    return Held(end[0], fields, size, datetime.fromtimestamp(end[1] / 1000, UTC))


def _keys(palace: Palace, conversation: str) -> tuple[str, str]:
    return key(palace, "conversation", conversation), key(palace, "conversations")


def _usual_ttl_ms() -> int:
    return int(settings.WORKING_MEMORY_TTL_S * 1000)


def _written(fields: object) -> list[str]:
    """Names and values in turn."""
    if not isinstance(fields, Mapping):
        raise BadInput("fields is an object: values by name.")
    flat, size = [], 0
    for name, value in fields.items():
        if name in _HELD_BY and not isinstance(value, _HELD_BY[name]):
            raise BadInput(f"The field {SCRATCHPAD} holds text, the field {ENTITIES} a list.")
        flat += [name_of("A field", name), json_of(f"The field {name}", value)]
        size += len(flat[-2].encode()) + len(flat[-1].encode())
    if size > MOST_BYTES:
        raise _too_much(size)
    return flat


def _read(flat: list[str]) -> dict[str, Any]:
    held = dict(zip(flat[::2], flat[1::2], strict=True))
    return {name: read_json(held[name]) for name in sorted(held) if name}


def _too_much(size: int) -> TooMuch:
    return TooMuch(
        f"A conversation's fields have up to {MOST_BYTES // 1024} KB, and would have "
        f"{size:,} bytes. Nothing was put; delete some, or put less."
    )
