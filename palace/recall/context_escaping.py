"""Escaping: text in the context block can neither close the block nor imitate a record.

Ordinary text and code stay unchanged. Every change is visible: an opening bracket before a pointer
or before the block's tag becomes a parenthesis, and each further line of a message begins with
`> `. Invisible characters without meaning for a reader are dropped.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

# Two joiners shape emoji and Persian; three marks only set the direction of adjacent text.
_KEPT_FORMATS = frozenset("\u200c\u200d\u200e\u200f\u061c")
# Format characters in Unicode that are visible, such as signs over Arabic numbers.
_VISIBLE_FORMATS = frozenset((*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD))
# Letters that render as nothing, and variation selectors, which can hide text.
_BLANK = frozenset(
    (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xE0100, 0xE01F0))
)
_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
# Letters of other scripts that look like letters of the tag's name or of pointers.
_LOOKALIKES = {
    lookalike: letter
    for letter, lookalikes in {
        "m": "мᴍМΜ", "e": "еᴇЕΕ", "o": "оοоᴏоОΟօ", "r": "гᴦʀ", "y": "уүуʏУΥ", "c": "сϲᴄСϹ",
        "n": "пոɴΝ", "t": "тτᴛТΤ", "x": "хχХΧ", "w": "ԝѡᴡԜ", "d": "ԁᴅ", "<": "ᐸᑅ𝈶く", ">": "ᐳ𝈷",
    }.items()
    for lookalike in lookalikes
}  # fmt: skip


class _Clean(dict[int, int | str | None]):
    """Maps each character to itself, a line feed, or nothing."""

    def __missing__(self, code: int) -> int | str | None:
        char = chr(code)
        self[code] = found = "\n" if char in _LINE_BREAKS else None if _dropped(char) else code
        return found


def _dropped(char: str) -> bool:
    code, category = ord(char), unicodedata.category(char)
    if category == "Cf":
        return char not in _KEPT_FORMATS and code not in _VISIBLE_FORMATS
    return code in _BLANK or (category == "Cc" and char != "\t")


class _Fold(dict[int, str]):
    """Maps each character to its lower-case ASCII look-alike, where it has one."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _looks_like(chr(code))
        return found


def _looks_like(char: str) -> str:
    if char.isascii():
        return char.lower()
    if unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return ""
    if char.isspace():
        return " "
    shape = _shape(char)
    if shape:
        return shape
    plain = unicodedata.normalize("NFKD", char)
    if plain != char:
        return plain.translate(_FOLD)
    return _LOOKALIKES.get(char, char).lower()


# Similar ASCII characters by words of the Unicode name.
_SHAPES = (
    (re.compile(r"LESS-THAN|LEFT.*ANGLE|PRECEDES|ARROWHEAD LEFT|LEFT ARROWHEAD"), "<"),
    (re.compile(r"GREATER-THAN|RIGHT.*ANGLE|SUCCEEDS|RIGHT ARROWHEAD"), ">"),
    (re.compile(r"LEFT.*(?:BRACKET|CEILING|FLOOR)"), "["),
    (re.compile(r"RIGHT.*BRACKET"), "]"),
    (re.compile(r"(?<!REVERSE )SOLIDUS|SLASH"), "/"),
    (re.compile(r"HYPHEN|DASH|MINUS"), "-"),
    (re.compile(r"LOW LINE"), "_"),
)


def _shape(char: str) -> str:
    if unicodedata.category(char)[0] not in "PS":
        return ""
    name = unicodedata.name(char, "")
    return next((shape for words, shape in _SHAPES if words.search(name)), "")


_CLEAN, _FOLD = _Clean(), _Fold()

# A character encoded as an HTML entity, a string escape or a URL escape.
_ESCAPE = r"\\{1,16}+"
_AMPERSAND = rf"(?:&|{_ESCAPE}(?:u0026|x26))(?:amp;){{0,8}}+"
_CODED = (
    rf"{_AMPERSAND}(?:#x0{{0,16}}+[0-9a-f]{{0,6}}|#0{{0,16}}+[0-9]{{0,7}}|[a-z]{{2,12}});?"
    rf"|{_ESCAPE}(?:u\{{[0-9a-f]{{1,6}}\}}|u[0-9a-f]{{4}}|x[0-9a-f]{{2}}|[0-7]{{2,3}}|[nrtvf])"
    r"|%(?:25){0,8}+[0-9a-f]{2}"
)
_NAME = re.compile(rf"memory(?:{_CODED}|[\W_]){{0,4}}context(?![a-z0-9_])")
_CODED_LAST = re.compile(rf"(?:{_CODED})\Z")
_ENTITY = re.compile(rf"{_AMPERSAND}(?=[#a-z])")
_LONGEST_CODE = 40
# Allowed between the angle bracket and the name, as in closing tags, comments and declarations.
_BETWEEN = frozenset(" \t\n/\\!?-")
_BRACKET = re.compile(rf"\[|{_CODED}")
# Bounded, so that many encoded brackets in a row do not cause quadratic time.
_TO_POINTER = re.compile(rf"(?>[ \t\n*~`|§_\"'^#:]++|</?[a-z]{{1,6}}>|[<>]|{_CODED}){{0,12}}+")
_POINTER = re.compile(r"w\W{0,3}\d++\W{0,4}r\W{0,3}\d")
_SUSPICIOUS = re.compile(rf"{_NAME.pattern}|§|&sect|167;|a7|{_POINTER.pattern}")
_COLON, _MARKS = re.compile("[:：﹕︓∶꞉ː׃܃᛬]"), frozenset(("", " ", "-", ">", "*", "+", "#", "["))
_CLOSING, _POINTER_CHARS = re.compile(r"[\[\]\n]"), 80


def quoted(text: str) -> str:
    """Escape a text of any length; each line after the first begins with `> `."""
    lines = _harmless(text).strip("\n").split("\n")
    return "\n".join([lines[0], *(f"> {line}".rstrip() for line in lines[1:])])


def on_one_line(text: str) -> str:
    """Escape a text and join its lines, for one-line records."""
    return " ".join(filter(None, map(str.strip, _harmless(text).split("\n"))))


def label(text: str) -> str:
    """Escape a speaker name, which precedes a colon, on one line.

    A colon in the name would attribute words to somebody, and a leading list or quote mark would
    change the kind of line, so both are replaced.
    """
    name = on_one_line(text)
    begins = next((at for at, char in enumerate(name) if _FOLD[ord(char)] not in _MARKS), len(name))
    return _COLON.sub(";", name[begins:])


def _harmless(text: str) -> str:
    text = text.replace("\r\n", "\n").translate(_CLEAN)
    folded = text.lower() if text.isascii() else text.translate(_FOLD)
    if not _SUSPICIOUS.search(folded):
        return text
    view = _Folded(text)
    return _rewritten(text, sorted((*_tags(view), *_pointers(view))))


def _rewritten(text: str, changes: list[tuple[int, int, str]]) -> str:
    parts, end = [], 0
    for start, stop, instead in changes:
        if start >= end:
            parts += [text[end:start], instead]
            end = stop
    return "".join([*parts, text[end:]])


# Start, end, and replacement.
_Change = tuple[int, int, str]


class _Folded:
    """The folded text, with a map from its positions to those of the original."""

    def __init__(self, text: str) -> None:
        pieces = [_FOLD[ord(char)] for char in text]
        self.text = "".join(pieces)
        self._places = [place for place, piece in enumerate(pieces) for _ in piece]

    def change(self, start: int, stop: int, instead: str) -> _Change:
        return self._places[start], self._places[stop - 1] + 1, instead


def _tags(folded: _Folded) -> Iterator[_Change]:
    """Replace angle brackets before the block's name, in any encoding of either."""
    for name in _NAME.finditer(folded.text):
        place = name.start()
        while place > 0:
            start, char = _last_char(folded.text, place)
            if char == "<":
                yield folded.change(start, place, "(")
            if char not in _BETWEEN and char:
                break
            place = start


def _last_char(folded: str, end: int) -> tuple[int, str]:
    """Start and value of the character that ends at `end`, decoded if it is encoded."""
    last = folded[end - 1]
    may_be_code = last.isalnum() or last in ";}"
    code = _CODED_LAST.search(folded, max(0, end - _LONGEST_CODE), end) if may_be_code else None
    if code is None:
        return end - 1, last
    return code.start(), _decoded(code[0])


def _decoded(code: str) -> str:
    """The folded character of an encoding; empty if it is invisible."""
    entity = _ENTITY.match(code)
    if entity is not None:
        name = code[entity.end() :].rstrip(";")
        return html.unescape(f"&{name};").translate(_FOLD)[:1]
    if code.startswith("%"):
        return chr(int(code[-2:], 16)).translate(_FOLD)
    escape = code.lstrip("\\")
    if escape in "nrtvf":
        return "\n"
    if escape[0] in "ux":
        point = int(escape.strip("ux{}"), 16)
        return chr(point).translate(_FOLD) if point <= 0x10FFFF else "?"
    return chr(int(escape, 8)).translate(_FOLD)


def _pointers(folded: _Folded) -> Iterator[_Change]:
    """Replace brackets around text that reads as a pointer."""
    for bracket in _BRACKET.finditer(folded.text):
        if bracket[0] != "[" and _decoded(bracket[0]) != "[":
            continue
        gap = _TO_POINTER.match(folded.text, bracket.end())
        before, after = (gap[0], gap.end()) if gap else ("", bracket.end())
        if _has_section_sign(before) or _POINTER.match(folded.text, after):
            yield folded.change(bracket.start(), bracket.end(), "(")
            yield from _closing(folded, after)


def _has_section_sign(text: str) -> bool:
    return "§" in text or any(_decoded(code) == "§" for code in re.findall(_CODED, text))


def _closing(folded: _Folded, place: int) -> Iterator[_Change]:
    found = _CLOSING.search(folded.text, place, place + _POINTER_CHARS)
    if found and found[0] == "]":
        yield folded.change(found.start(), found.end(), ")")
