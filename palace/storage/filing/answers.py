"""Answers of our own that come back in a tool's message: what they quote is in the palace already.

A program that calls Loci as a tool hands its model the answer, and files that with the rest of the
conversation. Such a message is ours if it is an answer as a whole, with no other field than our
doors send, and names a drawer, a fact, an episode or a recall of this very palace by its id.
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
    # A recall, a search, and a recall on record.
    "context citations tokens recollection notes results query hits context_tokens duration_ms"
    " recipe created_at asked_at facts carried cut reading figures id"
    # Lists.
    " relations memories total entity kind episodes items count next previous"
    # What was kept of messages, and of one.
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
# An answer may be handed on as MCP has it: `{"content": [{"type": "text", "text": "…"}]}`.
_ENVELOPE = frozenset(
    "content structuredContent structured_content isError is_error type text annotations meta _meta"
    .split()
)  # fmt: skip
_WRAPPED = ("content", "structuredContent", "structured_content", "text")
# Lists, objects and strings.
_BEGINNINGS = frozenset("[{\"'")
_DEEPEST = 8
_ID = re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])")


def our_answers(palace: Palace, texts: Iterable[str]) -> set[str]:
    """Those of the texts that are answers of ours, asked of the database at once."""
    named = {text: _ids_of_answer(text) for text in texts}
    wanted = {each for ids in named.values() for each in ids}
    known = _known(palace, wanted) if wanted else set()
    return {text for text, ids in named.items() if ids & known}


def _known(palace: Palace, wanted: set[str]) -> set[str]:
    """Those of the ids that something in the palace has."""
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
    """The ids in an answer of ours; none where the text is anything else."""
    ids = {each.lower() for each in _ID.findall(text)}
    return ids if ids and _is_answer(text, 0) else set()


def _is_answer(value: object, depth: int) -> bool:
    """Whether nothing is in it but an answer, in however many lists, strings and envelopes."""
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
    """What the text is as JSON or as a Python literal, escaped for HTML or not."""
    plain = html.unescape(text)
    for source in dict.fromkeys((text, plain)):
        if source.lstrip()[:1] not in _BEGINNINGS:
            continue
        for read in (json.loads, ast.literal_eval):
            # Too deep, or no literal at all.
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                yield read(source.strip())
