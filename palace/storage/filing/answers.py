"""Recognises Loci's own answers in tool messages: what they quote is in the palace already.

A program that calls Loci as a tool passes the answer to its model, and files it with the rest of
the conversation. A message counts as an answer if it has only fields that Loci's APIs send, and
contains the id of a drawer, a fact, an episode or a recall of this palace.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from palace.models import Drawer, Episode, Fact, Palace, RecollectionTrace

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
