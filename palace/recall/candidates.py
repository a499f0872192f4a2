"""Candidates: the drawers to score with every signal, each with its adjacent messages."""

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
    array_literal,
    decode_array,
    fetch_rows,
    isin_few,
    isin_sorted,
    union,
)
from palace.recall.semantic import Ids, Meaning, Scores

# Candidates taken from each of the semantic and keyword rankings, unless the recipe overrides it.
BEST_EACH = 200
# This many of the best also bring the messages before and after them.
BEST_WITH_NEIGHBOURS = 100
# Uninformative messages get 1/10 of the places, in addition.
UNINFORMATIVE_SHARE = 10
# Semantic candidates taken from each period that the question names.
BEST_IN_PERIOD = 100


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length, one row per drawer.

    Attributes:
        said_at: Seconds since the epoch.
        terms: Length in terms; `before_terms` and `after_terms` for the adjacent messages.
        traits: Bit mask of traits; `before_traits` and `after_traits` for the adjacent messages.
        before: Key of the previous message in the conversation, 0 at its start; `after` likewise.
        quoted: Share of the question's quotations and full names that the drawer contains.
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
        """Keys of the candidates and of their adjacent messages, ascending."""
        keys = union(self.drawers, self.before, self.after)
        return keys[keys > 0]


def find_candidates(
    palace: Palace, query: Query, meaning: Meaning, words: Words, *, best_each: int = BEST_EACH
) -> Candidates:
    """Collect the best drawers by meaning and by keywords, and their adjacent messages.

    Args:
        best_each: Number of candidates from each of the two rankings.
    """
    uninformative = NO_KEYS if query.intent.asks_asked else meaning.uninformative
    best = _best_of_both(meaning, words, best_each, uninformative)
    for period in query.time.periods:
        best = union(best, _best_within(meaning, palace, period.start, period.end))
    closest = _best_of_both(
        meaning, words, min(best_each // 2, BEST_WITH_NEIGHBOURS), uninformative
    )
    reach = np.where(isin_sorted(best, closest), 2, 1)
    index = meaning.index or load_around(palace.pk, best, reach)
    return _load(palace, query, index, _rows_with_neighbours(index, best, closest, query.as_of))


def _best_of_both(meaning: Meaning, words: Words, number: int, uninformative: Ids) -> Ids:
    """The best of each ranking, ascending; uninformative drawers displace no others."""
    return union(
        *_best_and_few_uninformative(meaning.drawers, meaning.best, number, uninformative),
        *_best_and_few_uninformative(words.drawers, words.scores, number, uninformative),
    )


def _best_and_few_uninformative(
    drawers: Ids, scores: Scores, number: int, uninformative: Ids
) -> tuple[Ids, ...]:
    """The best informative drawers, and a few of the best uninformative ones.

    Args:
        drawers: Ascending.
    """
    if len(drawers) <= number or not len(uninformative):
        return (_best(drawers, scores, number),)
    is_uninformative = isin_few(drawers, uninformative)
    few = max(number // UNINFORMATIVE_SHARE, 1)
    return (
        _best(drawers[~is_uninformative], scores[~is_uninformative], number),
        _best(drawers[is_uninformative], scores[is_uninformative], few),
    )


def _best(drawers: Ids, scores: Scores, number: int) -> Ids:
    if len(drawers) <= number:
        return drawers
    return drawers[np.argpartition(scores, -number)[-number:]]


def _best_within(meaning: Meaning, palace: Palace, start: datetime, end: datetime) -> Ids:
    if meaning.vector_query:  # The period may contain too many drawers to compare them all.
        within = closest_by_bits(meaning.vector_query, without_trash=True, period=(start, end))
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
    return np.sort(decode_array(keys, "i8"))


def _rows_with_neighbours(
    index: PalaceIndex, drawers: Ids, closest: Ids, as_of: datetime | None
) -> Rows:
    """Index rows of the drawers and of the messages adjacent to the closest ones, ascending."""
    latest = as_of.timestamp() if as_of else np.inf

    def said_in_time(rows: Rows) -> Rows:
        return rows[index.said_at[rows] <= latest]

    rows = said_in_time(index.rows_of(drawers))
    near = rows[isin_sorted(index.keys[rows], closest)]
    rows = union(rows, index.before[near], index.after[near])
    return said_in_time(rows[rows >= 0])


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
    """Share of the phrases that each drawer's text contains."""
    shares = np.zeros(len(drawers), dtype=np.float32)
    if phrases:
        [(keys, counts)] = fetch_rows(
            "SELECT substring(array_send(array_agg(id)) FROM 21),"
            " substring(array_send(array_agg(found)) FROM 21) FROM palace_drawer,"
            " LATERAL (SELECT count(*) AS found FROM unnest(%s::text[]) AS phrase"
            " WHERE strpos(lower(text), phrase) > 0)"
            " WHERE palace_id = %s AND id = ANY(%s::bigint[])",
            [phrases, palace.pk, array_literal(drawers)],
        )
        places = np.searchsorted(drawers, decode_array(keys, "i8"))
        shares[places] = decode_array(counts, "i8") / len(phrases)
    return shares
