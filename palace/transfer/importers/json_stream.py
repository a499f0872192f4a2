"""Parse JSON that is too large for memory: one long list, an object with one, or many documents.

The standard library's decoder runs on a sliding window. It is as fast as an event parser, and
keeps every text as it was written; Yajl, behind the usual event parsers, turns a lone surrogate
into a question mark.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from typing import Any, Never

from language.errors import BadImport
from palace.transfer.importers.conversation import Gatherer
from palace.transfer.importers.files import CHUNK, Part

BROKEN_LINE = "is a line that is cut off or no JSON object"
# A single conversation has to fit into memory; the largest real ones have a few dozen MB.
LARGEST_ITEM = 128 << 20
# No token but a string is longer than this. So an error further from the window's end is final, and
# not due to the end of the chunk.
_LONGEST_TOKEN = 64
# The characters by which text is recognised.
_HEAD = 64 << 10
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_BOM = codecs.BOM_UTF8


def _number(digits: str) -> int | float:
    """Exports have numbers as times and ids only, so thousands of digits need not be exact."""
    return int(digits) if len(digits) < 20 else float(digits)


_DECODER = json.JSONDecoder(parse_int=_number)


def first_character(part: Part) -> str:
    """The first character that is not space, without reading on; empty for an empty file."""
    head = part.stream.peek(CHUNK).removeprefix(_BOM)
    return head.lstrip()[:1].decode("latin-1")


def is_text(part: Part) -> bool:
    """Whether the file begins as text in UTF-8 does, without reading on."""
    head = part.stream.peek(CHUNK)[:CHUNK]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def is_utf16(part: Part) -> bool:
    """Whether the file begins as text in UTF-16 does: with its mark, or an ASCII character."""
    head = part.stream.peek(CHUNK)[:2]
    is_marked = head in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return is_marked or (len(head) == 2 and (head[0] == 0) != (head[1] == 0))


def head_text(part: Part) -> str:
    """The first characters, without reading on; bytes that are not UTF-8 are replaced."""
    return part.stream.peek(CHUNK)[:_HEAD].removeprefix(_BOM).decode(errors="replace")


def first_object(part: Part) -> Any:
    """The object that the file begins with, or its fields up to the first list in it."""
    line, _, _ = part.stream.peek(CHUNK).removeprefix(_BOM).lstrip().partition(b"\n")
    try:
        return _DECODER.decode(line.decode())
    except (ValueError, RecursionError):
        return JsonReader(part).glimpse()[0]


def list_items(part: Part, *, chunk: int = CHUNK, largest: int = LARGEST_ITEM) -> Iterator[Any]:
    """The items of a JSON list, one at a time.

    Args:
        chunk: Bytes to read at a time, at least.
        largest: The most characters of an item.
    """
    reader = JsonReader(part, chunk, largest)
    for _ in reader.elements():
        yield reader.value()
    if reader.peek():
        reader.fail("goes on after its list has ended")


def documents(part: Part) -> Iterator[Any]:
    """The items of a JSON list, or one document after the other, as in JSON Lines."""
    if first_character(part) == "[":
        yield from list_items(part)
        return
    reader = JsonReader(part)
    while reader.peek():
        yield reader.value()


def lines_of_a_log(part: Part, gatherer: Gatherer) -> Iterator[dict[str, Any]]:
    """The objects in JSON Lines of a program that may have been killed while writing.

    Broken lines are counted as skipped.
    """
    while line := part.stream.readline(LARGEST_ITEM):
        if not line.strip():
            continue
        try:
            value = _DECODER.decode(line.removeprefix(_BOM).decode())
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            yield value
        else:
            gatherer.skip(BROKEN_LINE)


def line_items(part: Part, *, largest: int = LARGEST_ITEM) -> Iterator[tuple[int, Any]]:
    """(line number from 1, value) of each line that is not blank.

    `largest` is the most bytes of a line.
    """
    number = 0
    while line := part.stream.readline(largest):
        number += 1
        if len(line) >= largest:
            raise BadImport(
                f"Line {number} of {part.name} is longer than {largest >> 20} MB; "
                "write one conversation a line."
            )
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield number, _line(part.name, number, line)


def _line(name: str, number: int, line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode())
    except json.JSONDecodeError as error:
        what = f"is not valid JSON at character {error.colno}"
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 at byte {error.start + 1}"
    except RecursionError:
        what = "is nested too deeply"
    raise BadImport(f"Line {number} of {name} {what}; nothing was imported.")


class JsonReader:
    """Reads a file through a sliding window of text."""

    def __init__(self, part: Part, chunk: int = CHUNK, largest: int = LARGEST_ITEM) -> None:
        self._chunk = chunk
        self._largest = largest
        self._name = part.name
        self._stream: io.BufferedReader = part.stream
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._bytes_before = 0
        self._ended = False
        if part.stream.peek(len(_BOM)).startswith(_BOM):
            self._bytes_before = len(part.stream.read(len(_BOM)))

    def peek(self) -> str:
        """The next character that is not space; empty at the end of the file."""
        while True:
            if match := _NO_SPACE.search(self._text, self._at):
                self._at = match.start()
                return match.group()
            self._at = len(self._text)
            if not self._more():
                return ""

    def take(self) -> str:
        character = self.peek()
        self._at += len(character)
        return character

    def value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._is_final(error) or not self._more():
                    self._fail_at(error)
            except RecursionError:
                self.fail("is nested too deeply")
            else:
                # A number at the very end may continue in the next chunk.
                if end < len(self._text) or not self._more():
                    self._at = end
                    return value

    def fields(self) -> Iterator[str]:
        """The names of an object's fields. The caller reads the value after each of them."""
        self._expect("{", "does not begin with an object")
        if self.peek() == "}":
            self.take()
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                self.fail("is not valid JSON: a key is no text")
            self._expect(":", "is not valid JSON: a key has no value")
            yield key
            if self._ends_with("}"):
                return

    def elements(self) -> Iterator[None]:
        """Stops before each item of a list, which the caller reads."""
        self._expect("[", "does not begin with a list")
        if self.peek() == "]":
            self.take()
            return
        while True:
            yield
            if self._ends_with("]"):
                return

    def glimpse(self, depth: int = 6) -> tuple[Any, bool]:
        """The next value, and whether it is whole: it ends with the first item of a list."""
        mark = self.peek()
        if mark == "[" and depth:
            for _ in self.elements():
                return [self.glimpse(depth - 1)[0]], False
            return [], True
        if mark == "{" and depth:
            found: dict[str, Any] = {}
            for key in self.fields():
                found[key], is_whole = self.glimpse(depth - 1)
                if not is_whole:
                    return found, False
            return found, True
        return self.value(), True

    def _expect(self, mark: str, otherwise: str) -> None:
        if self.take() != mark:
            self.fail(otherwise)

    def _ends_with(self, end: str) -> bool:
        """Take the mark between two items, or the one that ends them."""
        mark = self.take()
        if mark not in (",", end):
            self.fail("breaks off" if not mark else f"is not valid JSON: {mark!r} is out of place")
        return mark == end

    def fail(self, what: str) -> Never:
        position = self._bytes_before + len(self._text[: self._at].encode(errors="replace"))
        raise BadImport(f"{self._name} {what} (near byte {position:,}); nothing was imported.")

    def _fail_at(self, error: json.JSONDecodeError) -> Never:
        at_the_end = self._ended and not self._is_final(error)
        self._at = len(self._text) if at_the_end else error.pos
        self.fail("breaks off" if at_the_end else f"is not valid JSON: {error.msg}")

    def _is_final(self, error: json.JSONDecodeError) -> bool:
        """Whether more input cannot fix the error."""
        unterminated = error.msg.startswith("Unterminated string")
        return not unterminated and error.pos < len(self._text) - _LONGEST_TOKEN

    def _more(self) -> bool:
        """Read on, twice as far each time, so that decoding a long item takes linear time."""
        if self._ended:
            return False
        kept = self._text[self._at :]
        if len(kept) > self._largest:
            self.fail(f"holds a conversation of more than {self._largest >> 20} MB")
        self._bytes_before += len(self._text[: self._at].encode())
        data = self._stream.read(max(self._chunk, len(kept)))
        self._ended = not data
        try:
            self._text = kept + self._decode(data, final=self._ended)
        except UnicodeDecodeError:
            self._at = 0
            self._text = kept
            self.fail("is not UTF-8 text")
        self._at = 0
        return True
