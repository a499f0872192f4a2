"""Loci's own context blocks in messages, which filing leaves out.

What they quote is in the palace already. A context block is removed if its seal is valid, in any
encoding: escaped in JSON or in a Python string, escaped for HTML or in a URL, quoted or numbered
line by line, or several of these combined.
The seal is a keyed digest, so text that only looks like a block has no valid one, and is stored
byte for byte. From a user's message a block is removed only where programs insert it, before all
other text, of which there must be some. See "What is not kept" in docs/proxy.md.
"""

from __future__ import annotations

import dataclasses
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote_plus

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from language.transcripts import Role, Turn

BLOCK_START = "<memory_context>\nRecalled by Loci from earlier conversations, best match first."
BLOCK_END = "</memory_context>"
SEAL_LENGTH = 12  # Hex digits: 48 bits, which cannot be brute-forced without the key.
# "Seal", the colon and at most one token per digit; `count_tokens` adds a quarter.
SEAL_TOKENS = 18
_MARK = "Seal: "
_SALT = "palace.recall.seal"  # Existing blocks depend on it: do not change it.
UNSEALED = f"{_MARK}{'0' * SEAL_LENGTH}"
SEALED = re.compile(rf"{_MARK}([0-9a-f]{{{SEAL_LENGTH}}})(?![0-9a-f])")
# The seal is in the third line of a block, within this many characters.
_SEAL_WITHIN = 400
# Sources whose user messages are typed on Loci's own page, without a program in between.
TYPED_HERE = frozenset({"chat"})
# A character as it is, or in a URL.
_PERCENT = "%(?:25){0,8}"
_END = rf"(?:;|{_PERCENT}3b)"
# Up to sixteen backslashes: four nested strings.
_ESCAPE = rf"(?:\\|{_PERCENT}5c){{1,16}}+"
_AMPERSAND = rf"(?:&|{_PERCENT}26|{_ESCAPE}(?:u0026|x26))(?:amp{_END}){{0,8}}"


def _encoded(char: str, name: str) -> str:
    """The pattern of a character in any encoding."""
    code = f"{ord(char):02x}"
    entity = rf"(?:{name}|(?:#|{_PERCENT}23)(?:{ord(char)}|x{code}))"
    return rf"(?:{char}|{_AMPERSAND}{entity}{_END}|{_ESCAPE}(?:u00|x){code}|{_PERCENT}{code})"


_LESS, _GREATER = _encoded("<", "lt"), _encoded(">", "gt")
_SLASH = rf"(?:(?:{_ESCAPE})?/|{_encoded('/', 'sol')})"
_TAG = re.compile(
    rf"{_LESS}(?P<closes>{_SLASH})?memory(?:_|{_PERCENT}5f)context{_GREATER}", re.IGNORECASE
)
# In a URL the beginning of a block has no blanks.
_IN_URL = re.compile(r"Recalled(?:\+|%(?:25){0,8}20)by")
# A mark at the beginning of each line: a quote, an event, a difference, or a number.
_MARKED = re.compile(
    r"\n([^\w\n]{0,8}(?:\w{1,12}:)?[^\w\n]{0,8}|[ \t]*\d{1,7}[\t :|→]\s?)Recalled by"
)
# The bytes of a character beyond ASCII, as in `repr(b"…")`.
_BYTES = re.compile(r"(?:\\x[89a-f][0-9a-f])+")
STRING_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([\s\S]))")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}
# The beginning of a block, in any encoding, fits in this many characters.
_HEAD_CHARS, _MOST_LAYERS = 1200, 4
_HEAD = "".join(BLOCK_START.split())


def sealed(block: str) -> str:
    """The block with its seal; replaces an existing seal or `UNSEALED`."""
    found = SEALED.search(block, 0, _SEAL_WITHIN)
    if found is None:
        return block
    return f"{block[: found.start(1)]}{_digest(block, found)}{block[found.end(1) :]}"


def is_sealed(block: str) -> bool:
    """Whether Loci wrote exactly this block, ignoring whitespace."""
    found = SEALED.search(block, 0, _SEAL_WITHIN)
    if found is None:
        return False
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(constant_time_compare(found[1], _digest(block, found, key)) for key in keys)


def _digest(block: str, seal: re.Match[str], key: str | None = None) -> str:
    """
    Args:
        key: By default LOCI_SECRET_KEY.
    """
    rest = block[: seal.start(1)] + block[seal.end(1) :]
    words = "".join(unicodedata.normalize("NFC", rest).split())
    encoded = words.encode("utf-8", "surrogatepass")
    mac = salted_hmac(_SALT, encoded, secret=key, algorithm="sha256")
    return mac.hexdigest()[:SEAL_LENGTH]


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
    if role == "user" and not left.strip():
        # A program adds words of its user to a block; alone, the user sent it.
        return text
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
    layers = {_unmarked(span)}
    for _ in range(_MOST_LAYERS):
        if any(map(_is_plain_and_sealed, layers)):
            return True
        layers = {inner for text in layers for inner in _decoded(text)} - layers
    return any(map(_is_plain_and_sealed, layers))


def _decoded(text: str) -> Iterator[str]:
    """The text after undoing one encoding, whichever there may be."""
    if _IN_URL.search(text, 0, _HEAD_CHARS):
        # Nothing else shows in a URL.
        yield _unmarked(unquote_plus(text))
    elif SEALED.search(text, 0, _HEAD_CHARS):
        yield _unmarked(html.unescape(text))
        yield _unmarked(_unescaped(text))
        if _BYTES.search(text):
            yield _unmarked(_unescaped(_BYTES.sub(_text_of_bytes, text)))


def _unmarked(text: str) -> str:
    """The text without the mark that each of its lines begins with."""
    found = _MARKED.search(text, 0, _HEAD_CHARS)
    if found is None or not found[1].strip():
        return text
    mark = found[1].rstrip()
    if any(map(str.isdigit, mark)):
        return re.sub(r"\n[ \t]*\d{1,7}[\t :|→]?", "\n", text)
    return text.replace(f"\n{mark}", "\n")


def _text_of_bytes(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("\\x", "")).decode("utf-8", "replace")


def _is_plain_and_sealed(text: str) -> bool:
    return "".join(text[:_HEAD_CHARS].split()).startswith(_HEAD) and is_sealed(text)


def _unescaped(text: str) -> str:
    """Decode the text as a string literal of JSON, JavaScript or Python."""
    plain = STRING_ESCAPE.sub(escaped_character, text)
    # JSON encodes a character beyond the first 65,536 as a surrogate pair.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escaped_character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return _CONTROLS.get(escape[4], escape[4])
    point = int(code, 16)
    return chr(point) if point <= 0x10FFFF else "\ufffd"
