"""JSON as editors allow it, with comments and commas at the end: read, and changed in place.

All that a change is not about stays to the byte: comments, order, form.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import JSONDecoder
from typing import Any

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
# Behind a value: a comma alone in its brackets stays, and is refused.
_LAST_COMMA = re.compile(rf"({_STRING}|[{{\[]\s*,)|,(?=\s*[}}\]])")
_SPACE = re.compile(r"[ \t\r\n]*")
_scalar = JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class _Part:
    """A value in a text: `text[start:end]`.

    Attributes:
        begin: Where its name begins in an object; elsewhere `start`.
        parts: What is in it, by name or index.
    """

    begin: int
    start: int
    end: int
    value: Any
    parts: dict[Any, _Part]

    def span(self, text: str) -> str:
        return text[self.start : self.end]


def read(text: str) -> Any:
    """
    Raises:
        ValueError: it is none, or has a name twice in an object.
    """
    plain = _plain(text)
    if not plain.strip():
        return {}
    return json.loads(plain, object_pairs_hook=_without_repeats, parse_constant=_refuse)


def changed(text: str, wanted: Any) -> str:
    """The text with this value; `read` must understand it."""
    if not _plain(text).strip():
        # Behind a comment that ends with the file, it would be part of the comment.
        start = text if not text.strip() or text.endswith("\n") else f"{text}\n"
        return f"{start}{_dumped(text, wanted, '  ')}\n"
    # One difference after the other: each moves what is behind it.
    while read(text) != wanted:
        plain = _plain(text)
        text = _changed_once(text, _part(plain, _after_space(plain, 0)), wanted)
    return text


def has_comments(text: str, *names: str) -> bool:
    """Whether there are any in the value that these names lead to, one in the other."""
    plain = _plain(text)
    part = _part(plain, _after_space(plain, 0))
    for name in names:
        part = part.parts[name]
    value = part.span(text)
    return _without_comments(value) != value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Changed, one of two values with the same name would be lost."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {repeated!r} is in one object twice")
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number in JSON")


def _without_comments(text: str) -> str:
    """Spaces in their place, so that all else stays where it is."""
    return _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def _plain(text: str) -> str:
    """Strict JSON of the same length."""
    return _LAST_COMMA.sub(lambda found: found[1] or " ", _without_comments(text))


def _after_space(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _part(plain: str, start: int, begin: int | None = None) -> _Part:
    begin = start if begin is None else begin
    if plain[start] not in "{[":
        value, end = _scalar(plain, start)
        return _Part(begin, start, end, value, {})
    parts: dict[Any, _Part] = {}
    at = _after_space(plain, start + 1)
    while plain[at] not in "}]":
        name: Any = len(parts)
        first = at
        if plain[start] == "{":
            name, at = _scalar(plain, at)
            at = _after_space(plain, _after_space(plain, at) + 1)
        parts[name] = _part(plain, at, first)
        at = _after_space(plain, parts[name].end)
        at = _after_space(plain, at + 1) if plain[at] == "," else at
    values = {name: each.value for name, each in parts.items()}
    value = values if plain[start] == "{" else list(values.values())
    return _Part(begin, start, at + 1, value, parts)


def _changed_once(text: str, part: _Part, wanted: Any) -> str:
    """Without one of the differences."""
    match part.value, wanted:
        case dict() as value, dict():
            if gone := [name for name in value if name not in wanted]:
                return _without(text, part, gone[0])
            if new := [name for name in wanted if name not in value]:
                return _with(text, part, f"{json.dumps(new[0])}: ", wanted[new[0]])
            name = next(name for name in value if value[name] != wanted[name])
            return _changed_once(text, part.parts[name], wanted[name])
        case list() as value, list():
            pairs = zip(value, wanted, strict=False)
            at = next((n for n, (is_, to_be) in enumerate(pairs) if is_ != to_be), None)
            if len(value) > len(wanted):
                return _without(text, part, len(wanted) if at is None else at)
            if at is not None:
                return _changed_once(text, part.parts[at], wanted[at])
            return _with(text, part, "", wanted[len(value)])
    value_now = _dumped(text, wanted, _unit(text), _indent(text, part.begin))
    return text[: part.start] + value_now + text[part.end :]


def _without(text: str, part: _Part, name: Any) -> str:
    """Without this part of an object or a list; comments around it stay."""
    bare = _without_comments(text)
    names = list(part.parts)
    index, gone = names.index(name), part.parts[name]
    is_last = index == len(names) - 1
    until = part.end if is_last else part.parts[names[index + 1]].begin
    comma = bare.find(",", gone.end, until)
    start, end = len(text[: gone.begin].rstrip()), gone.end if comma < 0 else comma + 1
    # What follows on the line must not come to stand behind a comment.
    if text[end:].partition("\n")[0].strip() and "\n" in text[start : gone.begin]:
        start = gone.begin
    before = text[:start]
    if comma < 0 and index:
        at = bare.index(",", part.parts[names[index - 1]].end)
        before = text[:at] + text[at + 1 : start]
    if len(names) == 1 and not (text[part.start + 1 : start] + text[end : part.end - 1]).strip():
        return text[: part.start + 1] + text[part.end - 1 :]
    return before + text[end:]


def _with(text: str, part: _Part, name: str, value: Any) -> str:
    """With another part, after all others."""
    close = part.end - 1
    outer, unit = _indent(text, part.begin), _unit(text)
    last = list(part.parts.values())[-1:]
    end = last[0].end if last else part.start + 1
    behind = text[end:close]
    bare = _without_comments(text)[end:close]
    # With a comma after the last one, ours gets one too.
    comma, comma_after = ("", ",") if "," in bare else ("," * bool(last), "")
    if last and "\n" not in part.span(text) and bare == behind:
        return f"{text[:end]}, {name}{_dumped(text, value, '')}{text[end:]}"
    if not last and not behind.strip() and not _is_tall(text):
        return f"{text[:end]}{name}{_dumped(text, value, '')}{text[close:]}"
    indent = _indent(text, last[0].begin) if last else outer + unit
    kept = behind.rstrip()
    rest = behind[len(kept) :] if "\n" in behind[len(kept) :] else f"\n{outer}"
    piece = f"\n{indent}{name}{_dumped(text, value, unit, indent)}"
    return text[:end] + comma + kept + piece + comma_after + rest + text[close:]


def _is_tall(text: str) -> bool:
    """Whether it has a line for each member; so it gets them if it has none yet."""
    stripped = text.strip()
    return "\n" in stripped or not stripped[1:-1].strip()


def _unit(text: str) -> str:
    """The indentation of the outermost members."""
    plain = _plain(text)
    root = _part(plain, _after_space(plain, 0))
    first = next(iter(root.parts.values()), None)
    return (_indent(text, first.begin) if first else "") or "  "


def _indent(text: str, at: int) -> str:
    """The spaces at the beginning of the line of `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _dumped(text: str, value: Any, unit: str, indent: str = "") -> str:
    """As JSON in the form of the text."""
    lines = unit if not text or _is_tall(text) else ""
    made = json.dumps(value, indent=lines or None, ensure_ascii=False)
    # UTF-8 has no halves of surrogate pairs, in which texts that were cut may end.
    if (text and text.isascii()) or any("\ud800" <= each <= "\udfff" for each in made):
        made = json.dumps(value, indent=lines or None)
    return made.replace("\n", f"\n{indent}")
