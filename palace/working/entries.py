"""Entries under paths: texts with individual expiry, limited in number per namespace.

`inventory` lists them for a model, without their values; `search` finds them by words, category and
tags.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log
from typing import Any

from django.conf import settings
from django.utils import timezone

from language.analyzer import all_readings, analyze
from language.errors import BadInput, NamespaceFull, NotItsOwn
from language.storable import MOST_QUERY_CHARS, is_storable
from palace.models import Palace
from palace.working.redis_keys import (
    Namespace,
    Path,
    answering,
    begins,
    category_of,
    json_of,
    key,
    now_ms,
    parts_of_category,
    prefix_of,
    read_json,
    tags_of,
    ttl_ms_of,
    value_of,
)

OWN = (
    "Working memory (scratch space — use search_working_memory or get_from_working_memory to "
    "retrieve):"
)
PATROLS = (
    "Patrol findings in working memory (use get_from_working_memory with the full key to read):"
)
SUBAGENTS = (
    "Subagent research in working memory (use get_from_working_memory with the full key to read):"
)
LEFT_OUT = "- {count} older {entries} not listed here; search_working_memory finds them."
# The suffix of outline keys, which lead a session to the other entries.
INDEX = "-index"
# Common to all scripts: KEYS are the namespace's entries, their expiry times, and the palace's
# namespaces by their last expiry. Expired entries are deleted first. ARGV: the namespace.
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
# Further ARGV: the key, the body, its lifetime and the maximum number of entries. Returns the
# expiry time, or nothing if the namespace is full.
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
# A key, its body and its expiry time.
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
    """Store a text in the own namespace, replacing any previous one under this key.

    Args:
        key: A name, or a full path in `own`.
        ttl_seconds: Lifetime after each use.

    Raises:
        BadInput, TooMuch: an argument is invalid; NotItsOwn: the path is in another namespace.
        NamespaceFull: the namespace is full; WorkingMemoryAway: Redis does not respond.
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
    """Get the entry under a name in the own namespace or a full path; this renews its expiry.

    Raises:
        BadInput: the key is invalid; WorkingMemoryAway: Redis does not respond.
    """
    path = Path.read(key, own)
    row = _run(_GET, palace, path.namespace, path.key)
    return _entry(path.namespace, row) if row else None


def delete_entry(palace: Palace, own: Namespace, key: str) -> bool:
    """Delete an entry; returns whether it existed.

    Raises:
        BadInput: the key is invalid; NotItsOwn: the path is in another namespace.
        WorkingMemoryAway: Redis does not respond.
    """
    path = _own_path(key, own)
    return bool(_run(_DELETE, palace, own, path.key))


def entries_under(palace: Palace, prefix: str = "") -> list[Entry]:
    """List the palace's entries with a path prefix, in whole parts. Does not renew their expiry.

    Raises:
        BadInput: the prefix is invalid; WorkingMemoryAway: Redis does not respond.
    """
    parts = prefix_of(prefix)
    spaces = [space for space in namespaces(palace) if begins(space, parts[:2])]
    return [entry for entry in entries_in(palace, spaces) if begins(entry.path, parts)]


def entries_in(palace: Palace, spaces: Sequence[Namespace]) -> list[Entry]:
    """List all entries of these namespaces, by path. Does not renew their expiry.

    Raises:
        WorkingMemoryAway: Redis does not respond.
    """
    with answering() as redis, redis.pipeline(transaction=False) as pipe:
        for space in spaces:
            pipe.eval(_READ, 3, *_keys(palace, space), str(space))
        found = pipe.execute()
    pairs = ((space, row) for space, rows in zip(spaces, found, strict=True) for row in rows)
    return sorted((_entry(space, row) for space, row in pairs), key=lambda entry: entry.path)


def namespaces(palace: Palace) -> list[Namespace]:
    """The namespaces that have entries.

    Raises:
        WorkingMemoryAway: Redis does not respond.
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
    stored = read_json(body)
    return Entry(
        Path(space, name),
        stored["value"],
        datetime.fromisoformat(stored["stored_at"]),
        datetime.fromtimestamp(float(expires) / 1000, UTC),
        stored["category"],
        tuple(stored["tags"]),
    )


def inventory(
    palace: Palace,
    own: Namespace,
    *,
    most: float = math.inf,
    size_of: Callable[[str], int] = len,
) -> str:
    """A line for each own entry; for a session also patrols' entries and subagents' outlines.

    Empty if there are none.

    Args:
        most: The most that the entries' lines take, as `size_of` measures a line: its characters,
            or its tokens. Each part has an equal share, and what the parts before it left. The
            oldest entries are left out, and a line counts them.

    Raises:
        WorkingMemoryAway: Redis does not respond.
    """
    parts = [(OWN, entries_under(palace, str(own)))]
    if own.kind == "session":
        outlines = [each for each in entries_under(palace, "subagent") if is_outline(each)]
        parts += [(PATROLS, entries_under(palace, "patrol")), (SUBAGENTS, outlines)]
    parts = [(title, entries) for title, entries in parts if entries]
    now, written = timezone.now(), []
    for place, (title, entries) in enumerate(parts):
        lines, used = _latest_lines(entries, now, most / (len(parts) - place), size_of)
        most -= used
        written.append("\n".join([title, *lines]))
    return "\n\n".join(written)


def is_outline(entry: Entry) -> bool:
    return entry.path.key.endswith(INDEX)


def _latest_lines(
    entries: Sequence[Entry], now: datetime, most: float, size_of: Callable[[str], int]
) -> tuple[list[str], int]:
    """Lines of the latest entries that fit, in the order of `entries`; and their size together."""
    fitting: dict[Path, str] = {}
    used = 0
    for entry in sorted(entries, key=lambda each: each.stored_at, reverse=True):
        line = _line(entry, now)
        size = size_of(line)
        if used + size > most:
            break
        fitting[entry.path] = line
        used += size
    lines = [fitting[entry.path] for entry in entries if entry.path in fitting]
    if left_out := len(entries) - len(lines):
        noun = "entry" if left_out == 1 else "entries"
        lines.append(LEFT_OUT.format(count=left_out, entries=noun))
    return lines, used


def _line(entry: Entry, now: datetime) -> str:
    parts = [f"expires in {time_left(entry.expires_at - now)}"]
    if entry.category:
        parts.append(f"category: {entry.category}")
    if entry.tags:
        parts.append(f"tags: {', '.join(entry.tags)}")
    return f"- {entry.path}: {', '.join(parts)}"


def time_left(left: timedelta) -> str:
    """The time in its two largest units: `4m32s`, `4h08m`, `3d04h`; below a minute `9s`."""
    seconds = max(0, int(left.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    return f"{minutes}m{seconds % 60:02}s" if minutes else f"{seconds}s"


DEFAULT_LIMIT = 20
# The same as in recall.
K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class Found:
    """
    Attributes:
        score: BM25 among the filtered entries; 0 without words.
    """

    entry: Entry
    score: float


def search_entries(
    palace: Palace,
    *,
    query: str = "",
    category: str = "",
    tags: Iterable[str] = (),
    prefix: str = "",
    limit: int = DEFAULT_LIMIT,
) -> list[Found]:
    """Search entries that contain any of the words, best first; without words, newest first.

    Args:
        category: This category or one below it.
        tags: Entries must have all of them.
        prefix: A path prefix, in whole parts.

    Raises:
        BadInput: an argument is invalid; WorkingMemoryAway: Redis does not respond.
    """
    words = _query_of(query)
    within, having = parts_of_category(category), set(tags_of(tags))
    entries = [
        entry
        for entry in entries_under(palace, prefix)
        if having <= set(entry.tags) and begins(entry.category, within)
    ]
    if not words:
        newest = sorted(entries, key=lambda entry: entry.stored_at, reverse=True)
        return [Found(entry, 0.0) for entry in newest[:limit]]
    scores = bm25(all_readings(words), [analyze(_text(entry)) for entry in entries])
    found = [Found(entry, score) for entry, score in zip(entries, scores, strict=True) if score]
    return sorted(found, key=lambda one: (-one.score, one.entry.path))[:limit]


def bm25(query: Iterable[str], texts: Sequence[Counter[str]]) -> list[float]:
    """BM25 of each text, from 0 (Robertson, Zaragoza: The Probabilistic Relevance Framework)."""
    lengths = [text.total() for text in texts]
    mean = sum(lengths) / len(texts) if texts else 0
    scores = [0.0] * len(texts)
    for term in query:
        having = sum(term in text for text in texts)
        idf = log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for at, text in enumerate(texts):
            if count := text[term]:
                slowed = count + K1 * (1 - B + B * lengths[at] / mean)
                scores[at] += idf * count * (K1 + 1) / slowed
    return scores


def _query_of(query: object) -> str:
    if not isinstance(query, str) or len(query) > MOST_QUERY_CHARS or not is_storable(query):
        raise BadInput(
            f"A query is text of up to {MOST_QUERY_CHARS} characters that can be stored."
        )
    return query.strip()


def _text(entry: Entry) -> str:
    """Split into words, also at `-`, `_` and `/`."""
    return "\n".join([entry.value, *entry.tags, entry.category, entry.path.key])
