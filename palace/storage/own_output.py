"""Loci's own output in messages: context blocks and answers to tools, which filing leaves out.

What they quote is in the palace already. A context block is removed if its seal is valid, in any
encoding: escaped in JSON or in a Python string, escaped for HTML, or several of these combined.
The seal is a keyed digest, so text that only looks like a block has no valid one, and is stored
byte for byte. From a user's message a block is removed only where programs insert it, before all
other text, of which there must be some. See "What is not kept" in docs/proxy.md.

A program that calls Loci as a tool passes the answer to its model, and files it with the rest of
the conversation. A message counts as an answer if it has only fields that Loci's APIs send, and
contains the id of a drawer, a fact, an episode or a recall of this palace.
"""

from __future__ import annotations

import ast
import dataclasses
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from language.transcripts import Role, Turn
from palace.models import Drawer, Episode, Fact, Palace, RecollectionTrace

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
# The fields of answers by REST, MCP, SDK and command line.
FIELDS = frozenset(
    # A recall, a search, and a stored trace.
    "context citations tokens recollection notes results query hits context_tokens duration_ms"
    " recipe created_at asked_at facts carried cut reading figures id"
    # Lists.
    " relations memories total entity kind episodes items count next previous"
    # Stored messages, as a list and single.
    " conversation_id session_id drawers extraction uuid pointer text role speaker said_at wing"
    " room conversation metadata tags"
    # A fact, and an event of its history.
    " memory hash updated_at user_id agent_id run_id type subject predicate object key value aspect"
    " stance category confidence valid_from valid_to recorded_at held active pointers score"
    " source_session source_turn supersedes memory_id event old_memory new_memory old_value"
    " new_value timestamp is_deleted why by deleted message note changed kept kept_total trashed"
    # An episode.
    " summary key_decisions entities started_at ended_at".split()
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
_ID = re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])")


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


def loci_answers(palace: Palace, texts: Iterable[str]) -> set[str]:
    """The texts that are answers of Loci, with one database query per kind of id."""
    named = {text: _ids_of_answer(text) for text in texts}
    wanted = {each for ids in named.values() for each in ids}
    known = _known(palace, wanted) if wanted else set()
    return {text for text, ids in named.items() if ids & known}


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


def _ids_of_answer(text: str) -> set[str]:
    """The ids in an answer of Loci; empty for any other text."""
    ids = {each.lower() for each in _ID.findall(text)}
    return ids if ids and _is_answer(text, 0) else set()


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
