"""Keys of working memory: valid names, and where they lie in Redis.

Namespaces, paths, names, lifetimes and values are checked here. A deleted palace leaves no
reference to its keys. If Redis is down then, or a writer is late, a daily task finds them.
"""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, Self
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_delete

from language.errors import BadInput, TooMuch, WorkingMemoryAway
from language.storable import ID_LENGTH, is_storable
from palace.models import Palace

logger = logging.getLogger(__name__)

# The kinds of namespaces: the first part of all paths.
NAMESPACE_KINDS = ("session", "patrol", "subagent")
MOST_TTL_S = 30 * 24 * 3600
MOST_VALUE_BYTES = 256 * 1024
MOST_TAGS = 20
# Line breaks and invisible characters are not allowed in names.
_UNNAMEABLE = {"Cc", "Zl", "Zp"}
ANY_UUID = "-".join("?" * length for length in (8, 4, 4, 4, 12))
# Keys deleted at once.
BATCH = 500


@dataclass(frozen=True, slots=True, order=True)
class Namespace:
    """A namespace: of a session, a patrol or a subagent."""

    kind: str
    name: str

    @classmethod
    def read(cls, text: object) -> Self:
        """
        Raises:
            BadInput: it is not of the form `session/<id>`.
        """
        parts = _parts("A namespace", text)
        if len(parts) != 2 or parts[0] not in NAMESPACE_KINDS:
            known = ", ".join(f"{kind}/<name>" for kind in NAMESPACE_KINDS)
            raise BadInput(f"A namespace is one of {known}, not {_shown(text)}.")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The full path of an entry."""

    namespace: Namespace
    key: str

    @classmethod
    def read(cls, key: object, own: Namespace) -> Self:
        """
        Args:
            key: A name within `own`, or a full path, which begins with a kind of namespace.

        Raises:
            BadInput: it is neither.
        """
        parts = _parts("A key", key)
        if parts[0] not in NAMESPACE_KINDS or len(parts) == 1:
            return cls(own, "/".join(parts))
        if len(parts) == 2:
            raise BadInput(
                f"{_shown(key)} is a namespace, not a key; write its entry's name behind it."
            )
        return cls(Namespace(*parts[:2]), "/".join(parts[2:]))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}"


def prefix_of(text: object) -> tuple[str, ...]:
    """The parts of a path prefix; none for an empty text.

    Raises:
        BadInput: the prefix is invalid.
    """
    if text == "":
        return ()
    parts = _parts("A prefix", text.rstrip("/") if isinstance(text, str) else text)
    if parts[0] not in NAMESPACE_KINDS:
        raise BadInput(
            f"A path begins with one of {', '.join(NAMESPACE_KINDS)}, not with {_shown(text)}."
        )
    return parts


def begins(path: object, prefix: tuple[str, ...]) -> bool:
    """Whether the path has the prefix, in whole parts: `session/abc` is none of `session/abcd`."""
    return tuple(str(path).split("/")[: len(prefix)]) == prefix


def category_of(text: object) -> str:
    """Validate a category: parts separated by slashes; may be empty."""
    return "/".join(parts_of_category(text))


def parts_of_category(text: object) -> tuple[str, ...]:
    return _parts("A category", text) if text else ()


def tags_of(tags: object) -> tuple[str, ...]:
    """The distinct tags, in order."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise BadInput(f"tags is a list of texts, not {_shown(tags)}.")
    kept = tuple(dict.fromkeys(name_of("A tag", tag) for tag in tags))
    if len(kept) > MOST_TAGS:
        raise BadInput(f"An entry has up to {MOST_TAGS} tags, not {len(kept)}.")
    return kept


def name_of(what: str, text: object) -> str:
    """
    Args:
        what: The subject of error sentences, such as "A field".

    Raises:
        BadInput: it is not a storable name of one line.
    """
    if not isinstance(text, str) or not text or text != text.strip():
        raise BadInput(
            f"{what} has a name: text, without space at its ends, and not {_shown(text)}."
        )
    if len(text) > ID_LENGTH:
        raise BadInput(f"{what} has a name of up to {ID_LENGTH} characters, not {len(text)}.")
    if not is_storable(text) or any(unicodedata.category(sign) in _UNNAMEABLE for sign in text):
        raise BadInput(
            f"{what} has a name of one line, without characters that cannot be stored or seen "
            "(NUL, a lone surrogate, a line break)."
        )
    return text


def _parts(what: str, text: object) -> tuple[str, ...]:
    parts = tuple(name_of(what, text).split("/"))
    if any(part in {"", ".", ".."} or part != part.strip() for part in parts):
        raise BadInput(
            f"{what} is made of parts with one slash between them, none of them empty or of dots "
            f"alone, not {_shown(text)}."
        )
    return parts


def value_of(text: object) -> str:
    """Validate an entry's value; it stays verbatim.

    Raises:
        BadInput: it is not storable text; TooMuch: it is too long.
    """
    if not isinstance(text, str) or not is_storable(text):
        raise BadInput(
            "An entry's value is text without characters that cannot be stored (NUL or a lone "
            "surrogate)."
        )
    if (size := len(text.encode())) > MOST_VALUE_BYTES:
        raise TooMuch(
            f"An entry's value has up to {MOST_VALUE_BYTES // 1024} KB, this one has "
            f"{-(-size // 1024)}. Keep it in pieces, with an entry for each."
        )
    return text


def ttl_ms_of(seconds: object) -> int:
    """
    Raises:
        BadInput: it is not a valid lifetime.
    """
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= MOST_TTL_S:  # type: ignore[operator]
        raise BadInput(
            f"ttl_seconds is a number of seconds above 0 and up to {MOST_TTL_S} (30 days), not "
            f"{_shown(seconds)}."
        )
    return max(1, round(seconds * 1000))  # type: ignore[operator]


def json_of(what: str, value: object) -> str:
    """The value as JSON that round-trips.

    Raises:
        BadInput: JSON cannot represent it, or only as another value.
    """
    try:
        written = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        _check(what, value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{what} cannot be written as JSON: {error}.") from None
    return written


def _check(what: str, value: object) -> None:
    if isinstance(value, str):
        if not is_storable(value):
            raise BadInput(
                f"{what} holds a character that cannot be stored (NUL or a lone surrogate)."
            )
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise BadInput(f"{what} has the key {_shown(key)}; keys of objects are texts.")
            _check(what, key)
            _check(what, item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check(what, item)


def read_json(written: str) -> Any:
    return json.loads(written)


def _shown(value: Any) -> str:
    """The value for an error sentence: short and printable."""
    text = value if isinstance(value, str) else repr(value)
    seen = "".join(sign for sign in text[:60] if sign.isprintable())
    return f"“{seen}”"


@contextmanager
def answering() -> Iterator[redis.Redis]:
    """A Redis client that decodes text; translates its errors.

    Raises:
        WorkingMemoryAway: Redis does not respond, or is full.
    """
    try:
        yield _client(settings.REDIS_URL)
    except redis.RedisError as error:
        logger.warning("Working memory is unavailable: Redis does not respond (%s).", error)
        raise WorkingMemoryAway from error


def key(palace: Palace, kind: str, name: str = "") -> str:
    """The key, unique by palace, kind and name: a kind has no colon."""
    return f"{palace.uuid}:{kind}:{name}"


def now_ms(client: redis.Redis) -> int:
    """The time by Redis's clock, which determines expiry."""
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=settings.REDIS_TIMEOUT_S)


def forget_with_palaces() -> None:
    """Connect the deletion of keys to the deletion of palaces."""
    post_delete.connect(_palace_deleted, sender=Palace, dispatch_uid="working memory")


def forget_palace(palace_uuid: UUID) -> None:
    """
    Raises:
        WorkingMemoryAway: Redis does not respond; some keys may be left.
    """
    with answering() as client:
        for names in _batches(client, f"{palace_uuid}:*"):
            client.unlink(*names)


def forget_every_palace() -> None:
    """Delete the keys of all palaces: after a restore they belong to another time.

    Raises:
        WorkingMemoryAway: Redis does not respond; some keys may be left.
    """
    with answering() as client:
        for names in _batches(client, f"{ANY_UUID}:*"):
            client.unlink(*names)


def forget_deleted_palaces() -> int:
    """Delete the keys of deleted palaces; returns their number.

    Raises:
        WorkingMemoryAway: Redis does not respond; some keys may be left.
    """
    gone = 0
    with answering() as client:
        for names in _batches(client, f"{ANY_UUID}:*"):
            by_palace = {name: found for name in names if (found := _palace_of(name))}
            there = set(
                Palace.objects.filter(uuid__in=set(by_palace.values())).values_list(
                    "uuid", flat=True
                )
            )
            left = [name for name, palace in by_palace.items() if palace not in there]
            gone += len(left)
            if left:
                client.unlink(*left)
    return gone


def _palace_deleted(instance: Palace, **_: Any) -> None:
    transaction.on_commit(partial(_forget_or_leave, instance.uuid))


def _forget_or_leave(palace_uuid: UUID) -> None:
    try:
        forget_palace(palace_uuid)
    except WorkingMemoryAway:
        logger.warning("The working memory of a deleted palace is left to the daily task.")


def _batches(client: redis.Redis, pattern: str) -> Iterator[list[str]]:
    names = client.scan_iter(match=pattern, count=BATCH)
    while batch := list(islice(names, BATCH)):
        yield batch


def _palace_of(name: str) -> UUID | None:
    try:
        return UUID(name.partition(":")[0])
    except ValueError:
        return None
