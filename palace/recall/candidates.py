"""Candidates: the drawers worth scoring with every signal, and what surrounds each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from palace.models import Palace
from palace.recall.index.binary_quantization import closest_by_bits
from palace.recall.index.index_loader import load_around
from palace.recall.index.palace_index import PalaceIndex, Rows
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.raw_sql import (
    NO_KEYS,
    among,
    distinct,
    fetch_rows,
    keys_literal,
    marked,
    numbers,
)
from palace.recall.semantic import Ids, Meaning, Scores

# Of the best by each of meaning and words, as many as are looked at unless a recipe says else.
BEST_EACH = 200
# Of the best by either, this many bring the messages before and after along.
BEST_WITH_NEIGHBOURS = 100
# Beside those, one in so many may be a message that tells nothing.
SILENT_SHARE = 10
# How many of the closest in meaning are taken from a period the question names.
BEST_IN_PERIOD = 100


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length, one row a drawer.

    Attributes:
        said_at: Seconds since the epoch.
        terms: Length of each drawer in terms; likewise of the drawers before and after it.
        traits: Of each drawer, one bit a trait; likewise of the ones before and after.
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
    after_traits: npt.NDArray[np.int16]
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
    silent = NO_KEYS if query.intent.asks_asked else meaning.silent
    best = _either(meaning, words, best_each, silent)
    for period in query.time.periods:
        best = distinct(best, _best_within(meaning, palace, period.start, period.end))
    closest = _either(meaning, words, min(best_each // 2, BEST_WITH_NEIGHBOURS), silent)
    reach = np.where(among(best, closest), 2, 1)
    index = meaning.index or load_around(palace.pk, best, reach)
    return _load(palace, query, index, _rows(index, best, closest, query.as_of))


def _either(meaning: Meaning, words: Words, number: int, silent: Ids) -> Ids:
    """The best by each of the two, ascending. What tells nothing takes no other's place."""
    return distinct(
        *_best_apart(meaning.drawers, meaning.best, number, silent),
        *_best_apart(words.drawers, words.scores, number, silent),
    )


def _best_apart(drawers: Ids, scores: Scores, number: int, silent: Ids) -> tuple[Ids, ...]:
    """The best of those that tell something, and the best few of the others.

    Args:
        drawers: Ascending.
    """
    if len(drawers) <= number or not len(silent):
        return (_best(drawers, scores, number),)
    apart = marked(drawers, silent)
    few = max(number // SILENT_SHARE, 1)
    return (
        _best(drawers[~apart], scores[~apart], number),
        _best(drawers[apart], scores[apart], few),
    )


def _best(drawers: Ids, scores: Scores, number: int) -> Ids:
    if len(drawers) <= number:
        return drawers
    return drawers[np.argpartition(scores, -number)[-number:]]


def _best_within(meaning: Meaning, palace: Palace, start: datetime, end: datetime) -> Ids:
    if meaning.asked:  # All that was said then may be too much to look through.
        within = closest_by_bits(meaning.asked, without_trash=True, period=(start, end))
        meaning = meaning.with_all(within)
    elif meaning.index:
        within = meaning.index.said_within(start.timestamp(), end.timestamp())
    else:
        within = _said_within(palace, start, end)
    return _best(within, meaning.at(within, meaning.best), BEST_IN_PERIOD)


def _said_within(palace: Palace, start: datetime, end: datetime) -> Ids:
    [(keys,)] = fetch_rows(
        "SELECT substring(array_send(array_agg(id)) FROM 21) FROM palace_drawer"
        " WHERE palace_id = %s AND said_at >= %s AND said_at < %s AND trashed_at IS NULL",
        [palace.pk, start, end],
    )
    return np.sort(numbers(keys, "i8"))


def _rows(index: PalaceIndex, drawers: Ids, closest: Ids, as_of: datetime | None) -> Rows:
    """Where in the index the drawers are, and what stands beside the closest of them, ascending."""
    latest = as_of.timestamp() if as_of else np.inf

    def early(rows: Rows) -> Rows:
        return rows[index.said_at[rows] <= latest]

    rows = early(index.rows_of(drawers))
    near = rows[among(index.keys[rows], closest)]
    rows = distinct(rows, index.before[near], index.after[near])
    return early(rows[rows >= 0])


def _load(palace: Palace, query: Query, index: PalaceIndex, rows: Rows) -> Candidates:
    own = index.messages(rows)
    before, after = index.messages(index.before[rows]), index.messages(index.after[rows])
    phrases = [phrase.lower() for phrase in query.intent.phrases]
    return Candidates(
        drawers=index.keys[rows],
        rooms=own["room"],
        roles=index.roles(rows),
        speakers=index.speakers(rows),
        said_at=own["said_at"],
        preference=own["preference"],
        terms=own["terms"].astype(np.float32),
        traits=own["traits"],
        before=before["key"],
        before_terms=before["terms"].astype(np.float32),
        before_traits=before["traits"],
        after=after["key"],
        after_terms=after["terms"].astype(np.float32),
        after_traits=after["traits"],
        quoted=_quoted(palace, index.keys[rows], phrases),
    )


def _quoted(palace: Palace, drawers: Ids, phrases: list[str]) -> Scores:
    """The share of the phrases that the text of each drawer holds."""
    shares = np.zeros(len(drawers), dtype=np.float32)
    if phrases:
        [(keys, counts)] = fetch_rows(
            "SELECT substring(array_send(array_agg(id)) FROM 21),"
            " substring(array_send(array_agg(found)) FROM 21) FROM palace_drawer,"
            " LATERAL (SELECT count(*) AS found FROM unnest(%s::text[]) AS phrase"
            " WHERE strpos(lower(text), phrase) > 0)"
            " WHERE palace_id = %s AND id = ANY(%s::bigint[])",
            [phrases, palace.pk, keys_literal(drawers)],
        )
        places = np.searchsorted(drawers, numbers(keys, "i8"))
        shares[places] = numbers(counts, "i8") / len(phrases)
    return shares
