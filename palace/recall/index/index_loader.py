"""Surveying: reading a palace, or what was written to it since, into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from palace.recall.index.palace_index import (
    MESSAGE,
    NO_CODES,
    NO_VECTORS,
    BinaryCodes,
    IndexArrays,
    Messages,
    PalaceIndex,
    Vectors,
    packed,
)
from palace.recall.raw_sql import Keys, Kind, among, distinct, fetch_rows, keys_literal, numbers

# Of each message, as bytes; in the order of `MESSAGE`.
_MESSAGES = """
    substring(array_send(array_agg({m}.id)) FROM 21),
    substring(array_send(array_agg({m}.room_id)) FROM 21),
    substring(array_send(array_agg(
        hashtextextended({m}.conversation, hashtext({m}.source)))) FROM 21),
    substring(array_send(array_agg({m}.position)) FROM 21),
    substring(array_send(array_agg(extract(epoch FROM {m}.said_at)::float8)) FROM 21),
    substring(array_send(array_agg({m}.preference::float4)) FROM 21),
    substring(array_send(array_agg({m}.terms)) FROM 21),
    substring(array_send(array_agg({m}.traits)) FROM 21),
    array_agg({m}.role || ':' || {m}.speaker)
"""
# One statement: what it reads is all of one moment.
_SURVEY = f"""
SELECT (SELECT coalesce(max(revision), 0) FROM palace_change WHERE palace_id = %(palace)s),
       m.*, p.*
FROM (
    SELECT {_MESSAGES.format(m="d")} FROM palace_drawer d
    WHERE palace_id = %(palace)s AND trashed_at IS NULL AND {{drawers}}
) m, (
    SELECT substring(array_send(array_agg(drawer_id << 16 | ordinal)) FROM 21),
           string_agg({{vector}}, ''::bytea)
    FROM palace_passage
    WHERE palace_id = %(palace)s AND space_id = %(space)s AND bits IS NOT NULL AND {{passages}}
) p
"""  # noqa: S608 - put together from constants.
_OF_ALL = {
    "drawers": "true",
    "passages": "drawer_id NOT IN (SELECT id FROM palace_drawer"
    " WHERE palace_id = %(palace)s AND trashed_at IS NOT NULL)",
}
_OF_SOME = {
    "drawers": "id = ANY(%(keys)s::bigint[])",
    "passages": "drawer_id = ANY(%(keys)s::bigint[])",
}
# Without the head that says how long it is.
_VECTOR, _SIGNS = "substring(halfvec_send(embedding) FROM 5)", "substring(bit_send(bits) FROM 5)"
_FIELDS = (
    "palace_id, id, room_id, source, conversation, position, role, speaker, said_at, preference,"
    " terms, traits"
)
# One look along each conversation gives a message, and those beside it as far as is asked.
_AROUND = f"""
SELECT {_MESSAGES.format(m="n")}
FROM unnest(%(keys)s::bigint[], %(reach)s::int[]) AS wanted (id, reach)
-- Joined plainly, the whole palace would be read: it looks cheaper by the cost of a disk of old.
CROSS JOIN LATERAL (
    SELECT {_FIELDS} FROM palace_drawer
    WHERE palace_id = %(palace)s AND id = wanted.id AND trashed_at IS NULL
    LIMIT 1
) d
CROSS JOIN LATERAL (
    SELECT d.*
    UNION ALL (
        SELECT {_FIELDS} FROM palace_drawer
        WHERE palace_id = d.palace_id AND source = d.source AND conversation = d.conversation
          AND position < d.position AND trashed_at IS NULL
        ORDER BY position DESC LIMIT wanted.reach
    )
    UNION ALL (
        SELECT {_FIELDS} FROM palace_drawer
        WHERE palace_id = d.palace_id AND source = d.source AND conversation = d.conversation
          AND position > d.position AND trashed_at IS NULL
        ORDER BY position LIMIT wanted.reach
    )
) n
"""  # noqa: S608 - put together from constants.
_COLUMNS: dict[str, Kind] = {
    "key": "i8",
    "room": "i8",
    "conversation": "i8",
    "position": "i4",
    "said_at": "f8",
    "preference": "f4",
    "terms": "i4",
    "traits": "i2",
}
# More changed drawers than these are not looked up one by one.
MANY_CHANGED = 4000


@dataclass(frozen=True, slots=True)
class Place:
    """Of which palace, and in which space, passages are.

    Attributes:
        log: The change log's table: another schema's palace may have the same key.
        dimensions: Of the space.
        binary: Whether the binary codes of its vectors are read instead of the vectors.
    """

    log: int
    palace_id: int
    space_id: int
    dimensions: int
    binary: bool = False


def load_index(place: Place) -> PalaceIndex:
    """All of the palace."""
    return PalaceIndex(_read(place, None))


def load_changes(place: Place, index: PalaceIndex) -> PalaceIndex:
    """The palace as it is now; `index` itself where nothing was written since."""
    changes = fetch_rows(
        "SELECT revision, drawers FROM palace_change WHERE palace_id = %s AND revision >= %s"
        " ORDER BY revision",
        [place.palace_id, index.revision],
    )
    if [revision for revision, _ in changes] == [index.revision]:
        return index
    keys = _changed(index, changes)
    if keys is None:
        return load_index(place)
    # What is written between the two statements may be in what is read, but not all of it.
    left = replace(_read(place, keys), revision=changes[-1][0])
    return index.with_changes(keys, left)


def load_around(palace_id: int, drawers: Keys, reach: npt.NDArray[np.int64]) -> PalaceIndex:
    """Some drawers of a palace, with what stands beside them; without their vectors.

    Args:
        reach: How many messages before and after each drawer are looked at.
    """
    parameters = {
        "palace": palace_id,
        "keys": keys_literal(drawers),
        "reach": keys_literal(reach),
    }
    [(*columns, said_by)] = fetch_rows(_AROUND, parameters)
    messages, voices = _messages(columns, said_by or [])
    if len(messages):  # Many stand beside several others.
        keys = messages["key"]
        messages = messages[np.r_[True, keys[1:] != keys[:-1]]]
    return PalaceIndex(
        IndexArrays(0, messages, voices, np.empty(0, np.int64), NO_VECTORS, NO_CODES)
    )


def _changed(index: PalaceIndex, changes: list[tuple[int, list[int] | None]]) -> Keys | None:
    """Keys of what was written to since the index, ascending; None where nobody knows.

    What is here without its own revision was read in a transaction that came to nothing, or is
    so old that others have been dropped from the log.
    """
    if not changes or changes[0][0] != index.revision:
        return None
    parts = [np.array(drawers, dtype=np.int64) for _, drawers in changes[1:] if drawers]
    if len(parts) < len(changes) - 1 or sum(map(len, parts)) > MANY_CHANGED:
        return None
    return distinct(*parts)


def _read(place: Place, keys: Keys | None) -> IndexArrays:
    """Of all drawers, or of those with these keys."""
    parameters: dict[str, object] = {"palace": place.palace_id, "space": place.space_id}
    if keys is not None:
        parameters["keys"] = keys_literal(keys)
    statement = _SURVEY.format(
        vector=_SIGNS if place.binary else _VECTOR, **_OF_ALL if keys is None else _OF_SOME
    )
    [(revision, *columns, said_by, sent, sent_vectors)] = fetch_rows(statement, parameters)
    messages, voices = _messages(columns, said_by or [])
    passages = numbers(sent, "i8")
    order = np.argsort(passages, kind="stable")
    # Those of others are in the trash.
    order = order[among(passages[order] >> 16, messages["key"])]
    vectors, codes = _vectors(sent_vectors or b"", place)
    vectors, codes = vectors[order[: len(vectors)]], codes[order[: len(codes)]]
    return IndexArrays(revision, messages, voices, passages[order], vectors, codes)


def _messages(
    columns: Sequence[bytes | None], said_by: Sequence[str]
) -> tuple[Messages, tuple[str, ...]]:
    voices = {voice: place for place, voice in enumerate(dict.fromkeys(said_by))}
    messages = np.zeros(len(said_by), MESSAGE)
    for (name, kind), column in zip(_COLUMNS.items(), columns, strict=True):
        messages[name] = numbers(column, kind)
    messages["voice"] = [voices[voice] for voice in said_by]
    return messages[np.argsort(messages["key"], kind="stable")], tuple(voices)


def _vectors(sent: bytes, place: Place) -> tuple[Vectors, BinaryCodes]:
    """The one or the other."""
    if place.binary:
        rows = np.frombuffer(sent, np.uint8).reshape(-1, -(-place.dimensions // 8))
        return NO_VECTORS, packed(rows)
    halves = np.frombuffer(sent, ">f2").reshape(-1, place.dimensions)
    return halves.astype(np.float32), NO_CODES
