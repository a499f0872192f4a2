"""Names, paths, times and values: what may be kept, and where it belongs."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from palace.errors import BadInput
from palace.storable import ID_LENGTH, is_storable
from palace.working.errors import TooMuch

# The first parts of all paths.
KINDS = ("session", "patrol", "subagent")
MOST_TTL_S = 30 * 24 * 3600
MOST_VALUE_BYTES = 256 * 1024
MOST_TAGS = 20
# What ends a line or cannot be seen has no place in a name.
_UNNAMEABLE = {"Cc", "Zl", "Zp"}


@dataclass(frozen=True, slots=True, order=True)
class Namespace:
    """Whose entries they are: a session's, a patrol's or a subagent's."""

    kind: str
    name: str

    @classmethod
    def read(cls, text: object) -> Self:
        """
        Raises:
            BadInput: it is not of the form `session/<id>`.
        """
        parts = _parts("A namespace", text)
        if len(parts) != 2 or parts[0] not in KINDS:
            raise BadInput(
                f"A namespace is one of {', '.join(f'{kind}/<name>' for kind in KINDS)}, not "
                f"{_shown(text)}."
            )
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
            key: Plain, within `own`; or a full path, which begins with a kind of namespace.

        Raises:
            BadInput: it is neither.
        """
        parts = _parts("A key", key)
        if parts[0] not in KINDS or len(parts) == 1:
            return cls(own, "/".join(parts))
        if len(parts) == 2:
            raise BadInput(
                f"{_shown(key)} is a namespace, not a key; write its entry's name behind it."
            )
        return cls(Namespace(*parts[:2]), "/".join(parts[2:]))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}"


def prefix_of(text: object) -> tuple[str, ...]:
    """The parts that a path is to begin with; none for an empty text.

    Raises:
        BadInput: no path begins so.
    """
    if text == "":
        return ()
    parts = _parts("A prefix", text.rstrip("/") if isinstance(text, str) else text)
    if parts[0] not in KINDS:
        raise BadInput(f"A path begins with one of {', '.join(KINDS)}, not with {_shown(text)}.")
    return parts


def begins(path: object, prefix: tuple[str, ...]) -> bool:
    """In whole parts: `session/abc` does not begin `session/abcd`."""
    return tuple(str(path).split("/")[: len(prefix)]) == prefix


def category_of(text: object) -> str:
    """Parts with slashes between; empty for none."""
    return "/".join(parts_of_category(text))


def parts_of_category(text: object) -> tuple[str, ...]:
    return _parts("A category", text) if text else ()


def tags_of(tags: object) -> tuple[str, ...]:
    """Each once, in their order."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise BadInput(f"tags is a list of texts, not {_shown(tags)}.")
    kept = tuple(dict.fromkeys(name_of("A tag", tag) for tag in tags))
    if len(kept) > MOST_TAGS:
        raise BadInput(f"An entry has up to {MOST_TAGS} tags, not {len(kept)}.")
    return kept


def name_of(what: str, text: object) -> str:
    """
    Args:
        what: How the sentence is to begin, such as "A field".

    Raises:
        BadInput: it is no name of one line that can be kept.
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
    """An entry's value, to the byte.

    Raises:
        BadInput: it is no text that can be kept; TooMuch: it is too long.
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
        BadInput: it is no number of seconds that something can be kept for.
    """
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= MOST_TTL_S:  # type: ignore[operator]
        raise BadInput(
            f"ttl_seconds is a number of seconds above 0 and up to {MOST_TTL_S} (30 days), not "
            f"{_shown(seconds)}."
        )
    return max(1, round(seconds * 1000))  # type: ignore[operator]


def json_of(what: str, value: object) -> str:
    """The value as JSON, from which it can be read again as it was.

    Raises:
        BadInput: JSON cannot write it, or only as something else.
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
        for key, held in value.items():
            if not isinstance(key, str):
                raise BadInput(f"{what} has the key {_shown(key)}; keys of objects are texts.")
            _check(what, key)
            _check(what, held)
    elif isinstance(value, (list, tuple)):
        for held in value:
            _check(what, held)


def read_json(written: str) -> Any:
    return json.loads(written)


def _shown(value: Any) -> str:
    """In a sentence: short, and without what cannot be seen."""
    text = value if isinstance(value, str) else repr(value)
    seen = "".join(sign for sign in text[:60] if sign.isprintable())
    return f"“{seen}”"
