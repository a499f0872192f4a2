"""Candidates: the drawers worth scoring with every signal, and what surrounds each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from palace.models import Palace
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.rows import fetch_rows, numbers
from palace.recall.semantic import Ids, Meaning, Scores

# How many of the best by each of meaning and words are looked at.
BEST_EACH = 200
# Of the best by either, this many bring the messages before and after along.
BEST_WITH_NEIGHBOURS = 100
# How many of the closest in meaning are taken from a period the question names.
BEST_IN_PERIOD = 100

_ROWS = """
SELECT d.id, d.room_id, d.role, d.speaker, extract(epoch FROM d.said_at)::float8, d.preference,
       d.terms, coalesce(b.id, 0), coalesce(b.terms, 0), coalesce(a.id, 0), coalesce(a.terms, 0)
FROM palace_drawer d
LEFT JOIN LATERAL (
    SELECT id, terms FROM palace_drawer n
    WHERE n.palace_id = d.palace_id AND n.source = d.source AND n.conversation = d.conversation
      AND n.position < d.position AND n.trashed_at IS NULL
    ORDER BY n.position DESC LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT id, terms FROM palace_drawer n
    WHERE n.palace_id = d.palace_id AND n.source = d.source AND n.conversation = d.conversation
      AND n.position > d.position AND n.trashed_at IS NULL
    ORDER BY n.position LIMIT 1
) a ON true
WHERE d.palace_id = %s AND d.id = ANY(%s) AND d.trashed_at IS NULL
  AND (%s::timestamptz IS NULL OR d.said_at <= %s)
"""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length, one row a drawer.

    Attributes:
        said_at: Seconds since the epoch.
        terms: Length of each drawer in terms; likewise of the drawers before and after it.
        before: Key of the message before in the conversation, 0 at its start; likewise `after`.
    """

    drawers: Ids
    rooms: Ids
    roles: npt.NDArray[np.str_]
    speakers: npt.NDArray[np.str_]
    said_at: npt.NDArray[np.float64]
    preference: Scores
    terms: Scores
    before: Ids
    before_terms: Scores
    after: Ids
    after_terms: Scores

    def __len__(self) -> int:
        return len(self.drawers)


def find_candidates(palace: Palace, query: Query, meaning: Meaning, words: Words) -> Candidates:
    best = np.union1d(
        _best(meaning.drawers, meaning.best, BEST_EACH),
        _best(words.drawers, words.scores, BEST_EACH),
    )
    for period in query.time.periods:
        best = np.union1d(best, _best_within(palace, meaning, period.start, period.end))
    found = _load(palace, query, best)
    closest = np.union1d(
        _best(meaning.drawers, meaning.best, BEST_WITH_NEIGHBOURS),
        _best(words.drawers, words.scores, BEST_WITH_NEIGHBOURS),
    )
    close = np.isin(found.drawers, closest)
    beside = np.union1d(found.before[close], found.after[close])
    more = np.setdiff1d(beside[beside > 0], found.drawers)
    return _joined(found, _load(palace, query, more)) if len(more) else found


def _best(drawers: Ids, scores: Scores, number: int) -> Ids:
    if len(drawers) <= number:
        return drawers
    return drawers[np.argpartition(scores, -number)[-number:]]


def _best_within(palace: Palace, meaning: Meaning, start: datetime, end: datetime) -> Ids:
    [(keys,)] = fetch_rows(
        "SELECT substring(array_send(array_agg(id)) FROM 21) FROM palace_drawer"
        " WHERE palace_id = %s AND said_at >= %s AND said_at < %s AND trashed_at IS NULL",
        [palace.pk, start, end],
    )
    within = numbers(keys, "i8")
    return _best(within, meaning.at(within, meaning.best), BEST_IN_PERIOD)


def _load(palace: Palace, query: Query, drawers: Ids) -> Candidates:
    rows = fetch_rows(_ROWS, [palace.pk, drawers.tolist(), query.as_of, query.as_of])
    columns = list(zip(*rows, strict=True)) if rows else [()] * 11
    kinds = (np.int64, np.int64, str, str, np.float64, np.float32, np.float32)
    neighbours = (np.int64, np.float32, np.int64, np.float32)
    return Candidates(
        *(np.array(c, dtype=k) for c, k in zip(columns, (*kinds, *neighbours), strict=True))
    )


def _joined(first: Candidates, second: Candidates) -> Candidates:
    names = Candidates.__slots__
    return Candidates(
        *(np.concatenate([getattr(first, name), getattr(second, name)]) for name in names)
    )
