"""Entries under paths: each text with a time of its own, up to so many in a namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from palace.models import Palace
from palace.working.connection import answering, key, now_ms
from palace.working.errors import NamespaceFull, NotItsOwn
from palace.working.names import (
    Namespace,
    Path,
    begins,
    category_of,
    json_of,
    prefix_of,
    read_json,
    tags_of,
    ttl_ms_of,
    value_of,
)

# Of all scripts: KEYS are a namespace's entries, when each of them expires, and the palace's
# namespaces by when the last of theirs does. What has expired goes first. ARGV: the namespace.
_SWEEP = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for _, key in ipairs(expired) do redis.call('HDEL', KEYS[1], key) end
-- Only then: behind the first command that writes, Redis lets a script write though it is full.
if #expired > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now) end
local function settle()
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if last[2] then
    redis.call('PEXPIREAT', KEYS[1], last[2])
    redis.call('PEXPIREAT', KEYS[2], last[2])
    redis.call('ZADD', KEYS[3], last[2], ARGV[1])
  else
    redis.call('ZREM', KEYS[3], ARGV[1])
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  local all = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  if all[2] then redis.call('PEXPIREAT', KEYS[3], all[2]) end
end
"""
# ARGV goes on with the key, the body, its time and the most entries. Returns when it expires;
# nothing where the namespace is full.
_SET = f"""{_SWEEP}
local is_new = not redis.call('ZSCORE', KEYS[2], ARGV[2])
if is_new and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then return false end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[2])
settle()
return redis.call('ZSCORE', KEYS[2], ARGV[2])
"""
_GET = f"""{_SWEEP}
local body = redis.call('HGET', KEYS[1], ARGV[2])
if not body then return false end
redis.call('ZADD', KEYS[2], now + cjson.decode(body).ttl_ms, ARGV[2])
settle()
return {{ARGV[2], body, redis.call('ZSCORE', KEYS[2], ARGV[2])}}
"""
_DELETE = f"""{_SWEEP}
local gone = redis.call('HDEL', KEYS[1], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
settle()
return gone
"""
_READ = f"""{_SWEEP}
local found = {{}}
local ends = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for at = 1, #ends, 2 do
  found[#found + 1] = {{ends[at], redis.call('HGET', KEYS[1], ends[at]), ends[at + 1]}}
end
return found
"""

# A key, its body and when it expires.
Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Entry:
    path: Path
    value: str
    stored_at: datetime
    expires_at: datetime
    category: str
    tags: tuple[str, ...]


def set_entry(
    palace: Palace,
    own: Namespace,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str = "",
    tags: Iterable[str] = (),
) -> Entry:
    """Keep a text in one's own namespace, in place of what was there under this key.

    Args:
        key: Plain, or a full path in `own`.
        ttl_seconds: How long it is kept after each use.

    Raises:
        BadInput, TooMuch: something cannot be kept; NotItsOwn: the path leads elsewhere.
        NamespaceFull: it would be one too many; WorkingMemoryAway: Redis does not answer.
    """
    path = _own_path(key, own)
    ttl_ms = ttl_ms_of(settings.WORKING_ENTRY_TTL_S if ttl_seconds is None else ttl_seconds)
    entry = {
        "value": value_of(value),
        "stored_at": timezone.now().isoformat(),
        "ttl_ms": ttl_ms,
        "category": category_of(category),
        "tags": tags_of(tags),
    }
    most, body = settings.WORKING_ENTRIES, json_of("An entry", entry)
    expires = _run(_SET, palace, own, path.key, body, ttl_ms, most)
    if expires is None:
        raise NamespaceFull(own, most)
    return _entry(own, (path.key, body, expires))


def get_entry(palace: Palace, own: Namespace, key: str) -> Entry | None:
    """What is kept under a plain key of one's own, or under a full path; its time begins anew.

    Raises:
        BadInput: it is no key; WorkingMemoryAway: Redis does not answer.
    """
    path = Path.read(key, own)
    row = _run(_GET, palace, path.namespace, path.key)
    return _entry(path.namespace, row) if row else None


def delete_entry(palace: Palace, own: Namespace, key: str) -> bool:
    """Whether it was there.

    Raises:
        BadInput: it is no key; NotItsOwn: the path leads elsewhere.
        WorkingMemoryAway: Redis does not answer.
    """
    path = _own_path(key, own)
    return bool(_run(_DELETE, palace, own, path.key))


def entries_under(palace: Palace, prefix: str = "") -> list[Entry]:
    """The palace's entries whose path begins so, in whole parts, by path. That is no use of them.

    Raises:
        BadInput: no path begins so; WorkingMemoryAway: Redis does not answer.
    """
    parts = prefix_of(prefix)
    spaces = [space for space in namespaces(palace) if begins(space, parts[:2])]
    return [entry for entry in entries_in(palace, spaces) if begins(entry.path, parts)]


def entries_in(palace: Palace, spaces: Sequence[Namespace]) -> list[Entry]:
    """All entries of these namespaces, by path. That is no use of them.

    Raises:
        WorkingMemoryAway: Redis does not answer.
    """
    with answering() as redis, redis.pipeline(transaction=False) as pipe:
        for space in spaces:
            pipe.eval(_READ, 3, *_keys(palace, space), str(space))
        found = pipe.execute()
    pairs = ((space, row) for space, rows in zip(spaces, found, strict=True) for row in rows)
    return sorted((_entry(space, row) for space, row in pairs), key=lambda entry: entry.path)


def namespaces(palace: Palace) -> list[Namespace]:
    """Those that have entries.

    Raises:
        WorkingMemoryAway: Redis does not answer.
    """
    with answering() as redis:
        names: Any = redis.zrangebyscore(key(palace, "namespaces"), f"({now_ms(redis)}", "+inf")
    return sorted(Namespace.read(name) for name in names)


def _own_path(key: str, own: Namespace) -> Path:
    path = Path.read(key, own)
    if path.namespace != own:
        raise NotItsOwn(path, own)
    return path


def _run(script: str, palace: Palace, space: Namespace, *args: str | int) -> Any:
    with answering() as redis:
        return redis.eval(script, 3, *_keys(palace, space), str(space), *args)


def _keys(palace: Palace, space: Namespace) -> tuple[str, str, str]:
    name = str(space)
    return key(palace, "entries", name), key(palace, "expiries", name), key(palace, "namespaces")


def _entry(space: Namespace, row: Row) -> Entry:
    name, body, expires = row
    held = read_json(body)
    return Entry(
        Path(space, name),
        held["value"],
        datetime.fromisoformat(held["stored_at"]),
        datetime.fromtimestamp(float(expires) / 1000, UTC),
        held["category"],
        tuple(held["tags"]),
    )
