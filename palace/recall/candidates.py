"""Candidates: the drawers worth scoring with every signal, and what surrounds each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache

import numpy as np
import numpy.typing as npt

from palace.models import Palace
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.rows import Kind, among, distinct, fetch_rows, keys_literal, numbers
from palace.recall.semantic import Ids, Meaning, Scores, closest_by_bits

# Of the best by each of meaning and words, as many as are looked at unless a recipe says else.
BEST_EACH = 200
# Of the best by either, this many bring the messages before and after along.
BEST_WITH_NEIGHBOURS = 100
# How many of the closest in meaning are taken from a period the question names.
BEST_IN_PERIOD = 100

# One look along each conversation gives a message, those beside it and what is beside those.
_ROWS = """
SELECT substring(array_send(array_agg(d.id)) FROM 21),
       substring(array_send(array_agg(n.id)) FROM 21),
       substring(array_send(array_agg(n.position)) FROM 21),
       substring(array_send(array_agg(n.room_id)) FROM 21),
       substring(array_send(array_agg(extract(epoch FROM n.said_at)::float8)) FROM 21),
       substring(array_send(array_agg(n.preference::float4)) FROM 21),
       substring(array_send(array_agg(n.terms)) FROM 21),
       substring(array_send(array_agg(n.traits)) FROM 21),
       substring(array_send(array_agg({quoted})) FROM 21),
       array_agg(n.role || ':' || n.speaker)
FROM unnest(%s::bigint[], %s::int[]) AS wanted (id, reach)
-- Joined plainly, the whole palace would be read: it looks cheaper by the cost of a disk of old.
CROSS JOIN LATERAL (
    SELECT {columns}, source, conversation, palace_id FROM palace_drawer
    WHERE palace_id = %s AND id = wanted.id AND trashed_at IS NULL
      AND (%s::timestamptz IS NULL OR said_at <= %s)
    LIMIT 1
) d
CROSS JOIN LATERAL (
    SELECT {of_d}
    UNION ALL (
        SELECT {columns} FROM palace_drawer
        WHERE palace_id = d.palace_id AND source = d.source AND conversation = d.conversation
          AND position < d.position AND trashed_at IS NULL
        ORDER BY position DESC LIMIT wanted.reach
    )
    UNION ALL (
        SELECT {columns} FROM palace_drawer
        WHERE palace_id = d.palace_id AND source = d.source AND conversation = d.conversation
          AND position > d.position AND trashed_at IS NULL
        ORDER BY position LIMIT wanted.reach
    )
) n
"""
_COLUMNS = "id room_id role speaker said_at preference terms traits position text".split()
_QUOTED = """(
    SELECT count(*)::float4 FROM unnest(%s::text[]) AS phrase
    WHERE strpos(lower(n.text), phrase) > 0
)"""
_KINDS: tuple[Kind, ...] = ("i8", "i8", "i4", "i8", "f8", "f4", "i4", "i2", "f4")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length, one row a drawer.

    Attributes:
        said_at: Seconds since the epoch.
        terms: Length of each drawer in terms; likewise of the drawers before and after it.
        traits: Of each drawer, one bit a trait; likewise of the one before.
        before: Key of the message before in the conversation, 0 at its start; likewise `after`.
        quoted: The share of the question's quotations and full names that each one holds.
    """

    drawers: Ids
    rooms: Ids
    roles: npt.NDArray[np.str_]
    speakers: npt.NDArray[np.str_]
    said_at: npt.NDArray[np.float64]
    preference: Scores
    terms: Scores
    traits: npt.NDArray[np.int16]
    before: Ids
    before_terms: Scores
    before_traits: npt.NDArray[np.int16]
    after: Ids
    after_terms: Scores
    quoted: Scores

    def __len__(self) -> int:
        return len(self.drawers)

    def with_neighbours(self) -> Ids:
        """Keys of all of them and of the messages before and after, ascending."""
        keys = distinct(self.drawers, self.before, self.after)
        return keys[keys > 0]


def find_candidates(
    palace: Palace, query: Query, meaning: Meaning, words: Words, *, best_each: int = BEST_EACH
) -> Candidates:
    """
    Args:
        best_each: How many of the best by each of meaning and words are looked at.
    """
    best = _either(meaning, words, best_each)
    for period in query.time.periods:
        best = distinct(best, _best_within(palace, meaning, period.start, period.end))
    closest = _either(meaning, words, min(best_each // 2, BEST_WITH_NEIGHBOURS))
    return _load(palace, query, best, closest)


def _either(meaning: Meaning, words: Words, number: int) -> Ids:
    """The best by each of the two, ascending."""
    return distinct(
        _best(meaning.drawers, meaning.best, number), _best(words.drawers, words.scores, number)
    )


def _best(drawers: Ids, scores: Scores, number: int) -> Ids:
    if len(drawers) <= number:
        return drawers
    return drawers[np.argpartition(scores, -number)[-number:]]


def _best_within(palace: Palace, meaning: Meaning, start: datetime, end: datetime) -> Ids:
    if meaning.asked:  # All that was said then may be too much to look through.
        within = closest_by_bits(meaning.asked, without_trash=True, period=(start, end))
        meaning = meaning.with_all(within)
        return _best(within, meaning.at(within, meaning.best), BEST_IN_PERIOD)
    [(keys,)] = fetch_rows(
        "SELECT substring(array_send(array_agg(id)) FROM 21) FROM palace_drawer"
        " WHERE palace_id = %s AND said_at >= %s AND said_at < %s AND trashed_at IS NULL",
        [palace.pk, start, end],
    )
    within = numbers(keys, "i8")
    return _best(within, meaning.at(within, meaning.best), BEST_IN_PERIOD)


def _load(palace: Palace, query: Query, drawers: Ids, closest: Ids) -> Candidates:
    """The drawers, and what stands beside the closest of them, ascending."""
    phrases = [phrase.lower() for phrase in query.intent.phrases]
    reach = np.where(among(drawers, closest), 2, 1)
    [(*sent, said_by)] = fetch_rows(
        _statement(quoted=bool(phrases)),
        [
            *([phrases] if phrases else []),
            *(keys_literal(drawers), keys_literal(reach), palace.pk, query.as_of, query.as_of),
        ],
    )
    columns = [numbers(data, kind) for data, kind in zip(sent, _KINDS, strict=True)]
    order = np.lexsort((columns[2], columns[0]))
    around, ids, _position, rooms, said_at, preference, terms, traits, quoted = (
        column[order] for column in columns
    )
    kept = _kept(around, ids, closest)
    if query.as_of:
        kept = kept[said_at[kept] <= query.as_of.timestamp()]
    follows = np.r_[False, around[1:] == around[:-1]] if len(ids) else np.empty(0, np.bool_)
    before, has_before = kept - 1, follows[kept]
    after = np.minimum(kept + 1, len(ids) - 1)
    has_after = (after > kept) & follows[after]
    roles, speakers = _roles_and_speakers(said_by or [], order[kept])
    return Candidates(
        drawers=ids[kept],
        rooms=rooms[kept],
        roles=roles,
        speakers=speakers,
        said_at=said_at[kept],
        preference=preference[kept],
        terms=terms[kept].astype(np.float32),
        traits=traits[kept],
        before=np.where(has_before, ids[before], 0),
        before_terms=np.where(has_before, terms[before], 0).astype(np.float32),
        before_traits=np.where(has_before, traits[before], 0).astype(np.int16),
        after=np.where(has_after, ids[after], 0),
        after_terms=np.where(has_after, terms[after], 0).astype(np.float32),
        quoted=(quoted[kept] / max(len(phrases), 1)).astype(np.float32),
    )


def _kept(around: Ids, ids: Ids, closest: Ids) -> Ids:
    """Which rows are candidates, each drawer once and by ascending key.

    Args:
        around: Of each row, the drawer that it was found beside; rows are by that, then in the
            order of the conversation.
    """
    if not len(ids):
        return np.empty(0, np.int64)
    same = around[1:] == around[:-1]
    own = ids == around
    beside = np.r_[own[1:] & same, False] | np.r_[False, own[:-1] & same]
    rows = np.flatnonzero(own | (beside & among(around, closest)))
    rows = rows[np.argsort(ids[rows], kind="stable")]
    return rows[np.r_[True, ids[rows][1:] != ids[rows][:-1]]]


def _roles_and_speakers(
    said_by: list[str], places: Ids
) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.str_]]:
    parted = [said_by[place].partition(":") for place in places.tolist()]
    roles, _, speakers = zip(*parted, strict=True) if parted else ((), (), ())
    return np.array(roles, dtype=str), np.array(speakers, dtype=str)


@cache
def _statement(*, quoted: bool) -> str:
    return _ROWS.format(
        columns=", ".join(_COLUMNS),
        of_d=", ".join(f"d.{name}" for name in _COLUMNS),
        quoted=_QUOTED if quoted else "0::float4",
    )
