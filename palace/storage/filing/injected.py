"""Removes injected context blocks from messages, so that recalled text is not filed again.

A block is removed if its seal is valid, in any encoding: escaped in JSON or in a Python string,
escaped for HTML, or several of these combined. Text that only looks like a block is stored byte for
byte.

From a user's message a block is removed only where programs insert it, before all other text. See
"What is not kept" in docs/proxy.md.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterator

from language.transcripts import Role, Turn
from palace.storage.filing.block_markers import BLOCK_START, SEALED, is_sealed

# Sources whose user messages are typed on Loci's own page, without a program in between.
TYPED_HERE = frozenset({"chat"})

# Up to sixteen backslashes: four nested strings.
_ESCAPE = r"\\{1,16}+"
_AMPERSAND = rf"(?:&|{_ESCAPE}(?:u0026|x26))(?:amp;){{0,8}}"
_LESS = rf"(?:<|{_AMPERSAND}(?:lt|#60|#x3c);|{_ESCAPE}(?:u003c|x3c))"
_GREATER = rf"(?:>|{_AMPERSAND}(?:gt|#62|#x3e);|{_ESCAPE}(?:u003e|x3e))"
_SLASH = rf"(?:(?:{_ESCAPE})?/|{_AMPERSAND}(?:#47|#x2f|sol);|{_ESCAPE}(?:u002f|x2f))"
_TAG = re.compile(rf"{_LESS}(?P<closes>{_SLASH})?memory_context{_GREATER}", re.IGNORECASE)
_STRING_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([\s\S]))")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}
# The beginning of a block, in any encoding, fits in this many characters.
_HEAD_CHARS, _MOST_LAYERS = 1200, 4
_HEAD = "".join(BLOCK_START.split())


def without_injected_memory(turn: Turn, *, source: str = "") -> Turn:
    """The turn without injected context blocks.

    Args:
        source: The conversation's source.
    """
    if turn.role == "user" and source in TYPED_HERE:
        return turn
    text = own_words(turn.role, turn.text)
    return turn if text == turn.text else dataclasses.replace(turn, text=text)


def own_words(role: Role, text: str) -> str:
    """The text without the blocks that a program inserted."""
    kept, end = [], 0
    for start, stop in _blocks(text):
        if role == "user" and text[end:start].strip():
            break
        kept.append(text[end:start])
        end = len(text) - len(text[stop:].lstrip("\n"))
    if not end:
        return text
    left = "".join([*kept, text[end:]])
    # Without a letter or digit, the rest is quotation marks and brackets added by a program.
    return left if role == "user" or any(map(str.isalnum, left)) else ""


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sealed block, in order.

    No value within a block contains the block's tag, so a block begins with the last opening tag
    before its closing one: each character belongs to at most one candidate.
    """
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if not tag["closes"]:
            opened = tag
        elif opened is not None:
            if _is_block(text[opened.start() : tag.end()]):
                yield opened.start(), tag.end()
            opened = None


def _is_block(span: str) -> bool:
    """Whether it is a sealed block after undoing at most four encodings.

    The beginning does not reveal all encodings, so every order is tried.
    """
    if not SEALED.search(span, 0, _HEAD_CHARS):
        return False
    layers = {span}
    for _ in range(_MOST_LAYERS):
        if any(map(_is_plain_and_sealed, layers)):
            return True
        layers = {
            decode(text) for text in layers for decode in (_unescaped, html.unescape)
        } - layers
    return any(map(_is_plain_and_sealed, layers))


def _is_plain_and_sealed(text: str) -> bool:
    return "".join(text[:_HEAD_CHARS].split()).startswith(_HEAD) and is_sealed(text)


def _unescaped(text: str) -> str:
    """Decode the text as a string literal of JSON, JavaScript or Python."""
    plain = _STRING_ESCAPE.sub(_character, text)
    # JSON encodes a character beyond the first 65,536 as a surrogate pair.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return _CONTROLS.get(escape[4], escape[4])
    point = int(code, 16)
    return chr(point) if point <= 0x10FFFF else "\ufffd"
