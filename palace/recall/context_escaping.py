"""Escaping: text in the context block can neither close the block nor imitate a record.

Ordinary text and code stay unchanged. Every change is visible: an opening bracket before a pointer
or before the block's tag becomes a parenthesis, and each further line of a message begins with
`> `. Invisible characters without meaning for a reader are dropped.
"""

from __future__ import annotations

import html.entities
import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

_Else = TypeVar("_Else")

# Two joiners shape emoji and Persian; three marks only set the direction of adjacent text.
_KEPT_FORMATS = frozenset("\u200c\u200d\u200e\u200f\u061c")
# Format characters in Unicode that are visible, such as signs over Arabic numbers.
_VISIBLE_FORMATS = frozenset((*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD))
# Letters that render as nothing, and variation selectors, which can hide text.
_BLANK = frozenset(
    (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xE0100, 0xE01F0))
)
_BRAILLE_BLANK = "\u2800"
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
    if char.isspace() or char == _BRAILLE_BLANK:
        return " "
    shape = _shape(char)
    if shape:
        return shape
    plain = unicodedata.normalize("NFKD", char)
    if plain != char:
        return plain.translate(_FOLD)
    letter = _LETTER.search(unicodedata.name(char, ""))
    return _LOOKALIKES.get(char, letter[1] if letter else char).lower()


# Letters on discs, in squares and of flags, small capitals, and letters with a hook or a stroke.
_LETTER = re.compile(
    "(?:LATIN (?:CAPITAL|SMALL) LETTER|LATIN LETTER SMALL CAPITAL|INDICATOR SYMBOL LETTER)"
    " ([A-Z])(?: WITH |$)"
)
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
# Names of HTML entities in lower case; a name that has lower case of its own comes last and wins.
_ENTITIES = {
    name.rstrip(";").lower(): char
    for name, char in sorted(html.entities.html5.items(), key=lambda entity: entity[0].islower())
}
_UNENDED = "|".join(
    sorted({name.lower() for name in html.entities.html5 if name[-1] != ";"}, key=len)[::-1]
)
_CODED = re.compile(
    rf"{_AMPERSAND}(?:#x0{{0,16}}+(?P<hex>[0-9a-f]{{1,6}});?|#0{{0,16}}+(?P<dec>[0-9]{{1,7}});?"
    rf"|(?P<name>[a-z][a-z0-9]{{1,31}});|(?P<unended>{_UNENDED}))"
    rf"|{_ESCAPE}(?:u\{{(?P<braced>[0-9a-f]{{1,6}})\}}|u(?P<u>[0-9a-f]{{4}})|x(?P<x>[0-9a-f]{{2}})"
    r"|(?P<octal>[0-7]{2,3})|(?P<control>[nrtvf]))"
    r"|%(?:25){0,8}+(?P<url>[0-9a-f]{2})"
)
# Every encoding has one of these.
_CODE_SIGN = re.compile(r"[&\\%]")
# A text may be encoded several times.
_MOST_LAYERS = 4
_BETWEEN_LETTERS = r"[\W_]*+"
_NAME = re.compile(rf"{_BETWEEN_LETTERS.join('memorycontext')}(?![a-z0-9_])")
# Allowed between the angle bracket and the name, as in closing tags, comments and declarations; and
# a namespace.
_SIGNS = r"(?:[^\w<>=()\[\]{}\"'`,;]|_)*+"
_TAG = re.compile(rf"<{_SIGNS}(?:[\w.:-]{{1,63}}:)?{_SIGNS}{_NAME.pattern}")
# Bounded, so that many brackets in a row do not cause quadratic time.
_TO_POINTER = re.compile(r"(?>[ \t\n*~`|§_\"'^#:]++|</?[a-z]{1,6}>|[<>]){0,12}+")
_POINTER = re.compile(r"w\W{0,3}\d++\W{0,4}r\W{0,3}\d")
_SUSPICIOUS = re.compile(rf"{_NAME.pattern}|§|{_POINTER.pattern}")
_COLON, _MARKS = re.compile("[:：﹕︓∶꞉ː׃܃᛬]"), frozenset(("", " ", "-", ">", "*", "+", "#", "["))
# Most speakers: nothing of it is ever changed.
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*+(?: [A-Za-z0-9]++)*+")
_CLOSING, _POINTER_CHARS = re.compile(r"[\[\]\n]"), 80


def quoted(text: str) -> str:
    """Escape a text of any length; each line after the first begins with `> `."""
    first, more, rest = _harmless(text).strip("\n").partition("\n")
    if not more:
        return first
    lines = f"> {rest}".replace("\n", "\n> ").split("\n")
    return "\n".join([first, *map(str.rstrip, lines)])


def on_one_line(text: str) -> str:
    """Escape a text and join its lines, for one-line records."""
    return " ".join(filter(None, map(str.strip, _harmless(text).split("\n"))))


def label(text: str) -> str:
    """Escape a speaker name, which precedes a colon, on one line.

    A colon in the name would attribute words to somebody, and a leading list or quote mark would
    change the kind of line, so both are replaced.
    """
    if not text or _PLAIN_NAME.fullmatch(text):
        return text
    name = on_one_line(text)
    begins = next((at for at, char in enumerate(name) if _FOLD[ord(char)] not in _MARKS), len(name))
    return _COLON.sub(";", name[begins:])


def _harmless(text: str) -> str:
    if text.isascii():
        if not text.isprintable():
            text = text.replace("\r\n", "\n").translate(_CLEAN)
        folded = text.lower()
    else:
        text = text.replace("\r\n", "\n").translate(_CLEAN)
        folded = text.translate(_FOLD)
    if not _is_suspicious(folded):
        return text
    changes: list[_Change] = []
    view: _View | None = _View.of(text)
    for _ in range(_MOST_LAYERS):
        if view is None:
            break
        changes += (*_tags(view), *_pointers(view))
        view = view.decoded()
    return _rewritten(text, sorted(changes))


def _is_suspicious(folded: str) -> bool:
    for _ in range(_MOST_LAYERS):
        if _SUSPICIOUS.search(folded):
            return True
        if not _CODE_SIGN.search(folded):
            return False
        decoded = _CODED.sub(lambda code: _decoded(code, code[0]), folded)
        if decoded == folded:
            return False
        folded = decoded
    return False


def _rewritten(text: str, changes: list[_Change]) -> str:
    parts, end = [], 0
    for start, stop, instead in changes:
        if start >= end:
            parts += [text[end:start], instead]
            end = stop
    return "".join([*parts, text[end:]])


# Start, end, and replacement.
_Change = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class _View:
    """The text as a lenient reader sees it.

    Attributes:
        starts: Where each character of `text` begins in the original.
        ends: Where it ends there.
    """

    text: str
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, original: str) -> _View:
        """The folded text."""
        pieces = [_FOLD[ord(char)] for char in original]
        starts = [place for place, piece in enumerate(pieces) for _ in piece]
        return cls("".join(pieces), starts, [place + 1 for place in starts])

    def decoded(self) -> _View | None:
        """The view with one layer of encoding undone; None if nothing is encoded."""
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        end = 0
        for code in _CODED.finditer(self.text):
            char = _decoded(code, None)
            if char is None:
                continue
            pieces += (self.text[end : code.start()], char)
            starts += self.starts[end : code.start()]
            ends += self.ends[end : code.start()]
            end = code.end()
            starts += [self.starts[code.start()]] * len(char)
            ends += [self.ends[end - 1]] * len(char)
        if not end:
            return None
        pieces.append(self.text[end:])
        return _View("".join(pieces), starts + self.starts[end:], ends + self.ends[end:])

    def change(self, start: int, stop: int, instead: str) -> _Change:
        return self.starts[start], self.ends[stop - 1], instead


def _decoded(code: re.Match[str], otherwise: _Else) -> str | _Else:
    """The folded characters of an encoding, `otherwise` if it encodes none."""
    name = code["name"] or code["unended"]
    if name:
        char = _ENTITIES.get(name)
        return otherwise if char is None else char.translate(_FOLD)
    if code["control"]:
        return "\n"
    if code["octal"]:
        return chr(int(code["octal"], 8)).translate(_FOLD)
    if code["dec"]:
        point = int(code["dec"])
    else:
        point = int(code["hex"] or code["braced"] or code["u"] or code["x"] or code["url"], 16)
    return chr(point).translate(_FOLD) if point <= sys.maxunicode else otherwise


def _tags(view: _View) -> Iterator[_Change]:
    """Replace angle brackets before the block's name."""
    for tag in _TAG.finditer(view.text):
        yield view.change(tag.start(), tag.start() + 1, "(")


def _pointers(view: _View) -> Iterator[_Change]:
    """Replace brackets around text that reads as a pointer."""
    start = view.text.find("[")
    while start >= 0:
        gap = _TO_POINTER.match(view.text, start + 1)
        before, after = (gap[0], gap.end()) if gap else ("", start + 1)
        if "§" in before or _POINTER.match(view.text, after):
            yield view.change(start, start + 1, "(")
            yield from _closing(view, after)
        start = view.text.find("[", start + 1)


def _closing(view: _View, place: int) -> Iterator[_Change]:
    found = _CLOSING.search(view.text, place, place + _POINTER_CHARS)
    if found and found[0] == "]":
        yield view.change(found.start(), found.end(), ")")
