"""Answers of Loci's APIs in messages of programs, which filing leaves out.

A program that calls Loci as a tool passes the answer to its model, and files it with the rest of
the conversation. An answer, or a part of one, is an object that has only fields that Loci's APIs
send, and contains the id of a drawer, a fact, an episode or a recall of this palace. It is found as
JSON, as a Python or JavaScript literal, or truncated; anywhere in a text; and encoded: escaped in
strings, for HTML or in URLs, or several of these combined.
"""

from __future__ import annotations

import ast
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from palace.models import Drawer, Episode, Fact, Palace, RecollectionTrace
from palace.storage.own_output import STRING_ESCAPE, escaped_character

# The fields of answers by REST, MCP, SDK and command line.
FIELDS = frozenset(
    # A recall, a search, and a stored trace.
    "context citations tokens recollection notes results query hits context_tokens duration_ms"
    " recipe created_at asked_at facts carried cut reading figures id"
    # A hit, and a citation.
    " content snippet turn_id drawer timestamp signals outdated_since place place_before passage"
    " left_out shortened similarity"
    # Lists.
    " relations memories total entity kind episodes items count next previous"
    # Stored messages, as a list and single.
    " conversation_id session_id drawers extraction uuid pointer text role speaker said_at wing"
    " room conversation metadata tags"
    # A fact, and an event of its history.
    " memory hash updated_at user_id agent_id run_id type subject predicate object key value aspect"
    " stance category confidence valid_from valid_to recorded_at held active pointers score"
    " source_session source_turn supersedes memory_id event old_memory new_memory old_value"
    " new_value is_deleted why by deleted message note changed kept kept_total trashed"
    # An episode.
    " summary key_decisions entities tools made_by started_at ended_at".split()
)
# An answer may be wrapped as in MCP: `{"content": [{"type": "text", "text": "…"}]}`.
_ENVELOPE = frozenset(
    "content structuredContent structured_content isError is_error type text annotations meta _meta"
    .split()
)  # fmt: skip
_WRAPPED = ("content", "structuredContent", "structured_content", "text")
# Lists, objects and strings.
_BEGINNINGS = frozenset("[{\"'")
_DEEPEST = 8
# So many fields make an object within other text a part of an answer: all have more.
_FEWEST_FIELDS = 3
# A text may be encoded several times; of a very long one fewer encodings are undone.
_MOST_LAYERS, _MOST_CHARS = 4, 3_000_000
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ID = re.compile(rf"(?i)(?<![0-9a-f]){_UUID}(?![0-9a-f])")
# An encoded character before it may end in a digit.
_ID_SOMEWHERE = re.compile(f"(?i){_UUID}")
# What a program puts around an answer.
_BEFORE = re.compile(r"(?:```+\w*|\bdata:|\bb?[\"'])\s*\Z")
_BEFORE_CHARS = 40
_AFTER = re.compile(r"\s*(?:```+|[\"'])")


def without_loci_answers(palace: Palace, texts: Iterable[str]) -> dict[str, str]:
    """Of the texts with answers of Loci, what else they say; may be empty.

    One database query per kind of id.
    """
    found = {text: answers for text in texts if (answers := list(find_answers(text)))}
    wanted = {each for answers in found.values() for answer in answers for each in answer.ids}
    known = _known(palace, wanted) if wanted else set()
    left: dict[str, str] = {}
    for text, answers in found.items():
        spans = [(each.start, each.stop) for each in answers if not each.ids.isdisjoint(known)]
        if spans:
            left[text] = _cut(text, sorted(spans))
    return left


def _known(palace: Palace, wanted: set[str]) -> set[str]:
    """The ids that exist in the palace."""
    columns = (
        (Drawer.objects.within(palace), "uuid"),
        (Fact.objects.within(palace), "memory"),
        (Fact.objects.within(palace), "uuid"),
        (Episode.objects.within(palace), "uuid"),
        (RecollectionTrace.objects.filter(palace=palace), "uuid"),
    )
    found: set[str] = set()
    for rows, column in columns:
        keys = rows.order_by().filter(**{f"{column}__in": wanted}).values_list(column, flat=True)
        found.update(map(str, keys))
    return found


class _Answer(NamedTuple):
    start: int
    stop: int
    ids: frozenset[str]


def find_answers(text: str) -> Iterator[_Answer]:
    """Where answers of any palace may be; they may overlap."""
    if not _ID_SOMEWHERE.search(text):
        return
    ids = _ids(text)
    if ids and _is_answer(text, 0):
        yield _Answer(0, len(text), ids)
        return
    for layer in _layers(text):
        for start, stop in _objects(layer.text):
            ids = _ids(layer.text[start:stop])
            if ids:
                yield _Answer(layer.original(start), layer.original(stop), ids)


def _ids(text: str) -> frozenset[str]:
    return frozenset(each.lower() for each in _ID.findall(text))


def _cut(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept, end = [], 0
    for start, stop in spans:
        if stop <= end:
            continue
        before = text[end : max(start, end)]
        mark = _BEFORE.search(before, max(len(before) - _BEFORE_CHARS, 0))
        after = _AFTER.match(text, stop)
        if mark and (after or "data" in mark[0]):
            before = before[: mark.start()]
            stop = after.end() if after and "data" not in mark[0] else stop
        kept.append(before)
        end = stop
    left = "".join([*kept, text[end:]])
    # Without a letter or digit, the rest is quotation marks and brackets added by a program.
    return left if any(map(str.isalnum, left)) else ""


def _is_answer(value: object, depth: int) -> bool:
    """Whether it consists of answers only, possibly nested in lists, strings and envelopes."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, str):
        return any(_is_answer(each, depth + 1) for each in _read(value))
    if isinstance(value, list):
        return bool(value) and all(_is_answer(each, depth + 1) for each in value)
    if not isinstance(value, Mapping) or not value:
        return False
    if value.keys() <= _ENVELOPE:
        inner = [value[name] for name in _WRAPPED if value.get(name)]
        return bool(inner) and all(_is_answer(each, depth + 1) for each in inner)
    return value.keys() <= FIELDS


def _read(text: str) -> Iterator[object]:
    """The values of the text as JSON or as a Python literal, with or without HTML escaping."""
    plain = html.unescape(text)
    for source in dict.fromkeys((text, plain)):
        if source.lstrip()[:1] not in _BEGINNINGS:
            continue
        for read in (json.loads, ast.literal_eval):
            # Too deep, or not a literal.
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                yield read(source.strip())


class _Encoding(NamedTuple):
    """
    Attributes:
        sign: What hides the structure of an object in a text of this encoding.
        code: An encoded character.
        decode: What it encodes.
    """

    sign: re.Pattern[str]
    code: re.Pattern[str]
    decode: Callable[[re.Match[str]], str]


_ENCODINGS = (
    _Encoding(re.compile(r"\\(?:[\"']|u0022|x22)"), STRING_ESCAPE, escaped_character),
    _Encoding(
        re.compile("&(?:amp;){0,8}(?:quot|apos|#34|#39|#x22|#x27);", re.IGNORECASE),
        re.compile("&(?:#[xX]?[0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});"),
        lambda code: html.unescape(code[0]),
    ),
    _Encoding(
        re.compile("%(?:25){0,8}(?:22|27|7B)", re.IGNORECASE),
        re.compile(r"%([0-9a-fA-F]{2})|\+"),
        # Bytes of other characters are of no account: fields and ids have none.
        lambda code: chr(int(code[1], 16)) if code[1] else " ",
    ),
    # Marks at the beginnings of lines: quotes, events, numbers, differences.
    _Encoding(
        re.compile(r"^(?:[ \t]*(?:>|data:|\d{1,7}[\t:|→])|\+)", re.MULTILINE),
        re.compile(r"^(?:[ \t]*(?:>|data:|\d{1,7}[\t:|→])|\+)[ \t]?", re.MULTILINE),
        lambda _: "",
    ),
)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A text, and the one that it is decoded from.

    Attributes:
        places: Where undecoded stretches begin in the text, in order.
        origins: Where each begins in the outer text.
    """

    text: str
    outer: _Layer | None = None
    places: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)

    def original(self, place: int) -> int:
        """Where in the outermost text."""
        if self.outer is None:
            return place
        stretch = bisect_right(self.places, place) - 1
        return self.outer.original(self.origins[stretch] + place - self.places[stretch])

    def decoded(self, encoding: _Encoding) -> _Layer:
        pieces: list[str] = []
        places, origins, end, length = [0], [0], 0, 0
        for code in encoding.code.finditer(self.text):
            piece, char = self.text[end : code.start()], encoding.decode(code)
            pieces += (piece, char)
            length += len(piece) + len(char)
            end = code.end()
            places += (length - len(char), length)
            origins += (code.start(), end)
        pieces.append(self.text[end:])
        return _Layer("".join(pieces), self, places, origins)


def _layers(text: str) -> Iterator[_Layer]:
    """The text, and what it is after undoing its encodings in every order."""
    layers, left = {text: _Layer(text)}, _MOST_CHARS
    yield from layers.values()
    for _ in range(_MOST_LAYERS):
        inner: dict[str, _Layer] = {}
        for layer, encoding in product(layers.values(), _ENCODINGS):
            if left > 0 and encoding.sign.search(layer.text):
                left -= len(layer.text)
                decoded = layer.decoded(encoding)
                if decoded.text not in layers:
                    inner[decoded.text] = decoded
        yield from inner.values()
        layers = inner


_TOKEN = re.compile(
    r"\s*+(?:(?P<open>[\[{(])|(?P<close>[\]})])|(?P<mark>[,:])|(?P<word>[-+.\w]++(?![\"']))"
    r"|(?P<string>[bru]?(?:\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"?|'[^'\\]*+(?:\\.[^'\\]*+)*+'?)))",
    re.DOTALL,
)
_PAIRS = {"]": "[", "}": "{", ")": "("}


@dataclass(slots=True)
class _Value:
    """An object or a list that is being read.

    Attributes:
        parts: Spans of answers in it.
    """

    sign: str
    start: int
    fields: set[str] = field(default_factory=set)
    parts: list[tuple[int, int]] = field(default_factory=list)

    def add(self, parts: list[tuple[int, int]]) -> None:
        """In any order; the shorter list is appended, so that no part moves up many times."""
        self.parts, fewer = sorted((self.parts, parts), key=len, reverse=True)
        self.parts += fewer

    def answers(self, stop: int) -> list[tuple[int, int]]:
        """Itself if it is an answer, otherwise those in it."""
        is_answer = (
            self.sign == "{"
            and self.fields <= FIELDS
            and (self.parts or len(self.fields) >= _FEWEST_FIELDS)
        )
        return [(self.start, stop)] if is_answer else self.parts


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the outermost objects with fields of answers, whole or as far as they go.

    What ends an object too early may be a quotation mark that opened a string in place of closing
    one, so reading goes on within the last string: nearly no character is read more than twice.
    """
    start = text.find("{")
    while start >= 0:
        answers, end = _read_object(text, start)
        yield from answers
        start = text.find("{", max(end, start + 1))


def _read_object(text: str, start: int) -> tuple[list[tuple[int, int]], int]:
    """The answers in the value that begins at `start`, and where to read on."""
    opened: list[_Value] = []
    place, before, last, string = start, "", "", -1
    while token := _token(text, place, before, opened):
        kind, place = str(token.lastgroup), token.end()
        sign = token[kind]
        if kind == "open":
            opened.append(_Value(sign, token.start(kind)))
        elif kind == "close":
            closed = opened.pop()
            if not opened:
                return closed.answers(place), place
            opened[-1].add(closed.answers(place))
        elif sign == ":":
            opened[-1].fields.add(_name(last))
        elif kind == "string":
            string = token.start(kind)
        last = sign
        before = sign if kind in ("open", "mark") else kind
    answers: list[tuple[int, int]] = []
    for value in reversed(opened):
        value.add(answers)
        answers = value.answers(place)
    return answers, string + 1 if string >= 0 else place


def _name(sign: str) -> str:
    """The name of a field, which may have quotation marks."""
    return sign.lstrip("bru")[1:-1] if sign[-1:] in "\"'" else sign


def _token(text: str, place: int, before: str, opened: list[_Value]) -> re.Match[str] | None:
    """The next token, if it continues the value."""
    token = _TOKEN.match(text, place)
    if token is None:
        return None
    kind = str(token.lastgroup)
    return token if _may_follow(kind, token[kind], before, opened) else None


def _may_follow(kind: str, sign: str, before: str, opened: list[_Value]) -> bool:
    """Whether the token continues the value.

    Args:
        before: The token before, an opening sign or a mark; of others the kind.
    """
    if not opened:
        return kind == "open"
    is_object = opened[-1].sign == "{"
    if kind == "close":
        return opened[-1].sign == _PAIRS[sign] and before != ":"
    if kind == "mark":
        is_after_value = before in ("string", "word", "close")
        return is_after_value and (sign == "," or (is_object and before != "close"))
    if before in ("string", "word", "close"):
        return False
    return kind != "open" or not is_object or before == ":"
