"""Candidates: the drawers to score with every signal, each with its adjacent messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

import numpy as np
import numpy.typing as npt

from isolation.raw_sql import fetch_rows
from language.storable import storable_id
from palace.models import Drawer, Palace
from palace.recall.index.index_loader import load_around
from palace.recall.index.palace_index import PalaceIndex, closest_by_bits
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.raw_sql import (
    NO_KEYS,
    Rows,
    array_literal,
    decode_array,
    isin_few,
    isin_sorted,
    union,
)
from palace.recall.request import RecallRequest, narrowed
from palace.recall.semantic import Ids, Meaning, Places, Scores

# Candidates taken from each of the semantic and keyword rankings, unless the recipe overrides it.
BEST_EACH = 200
# This many of the best also bring the messages before and after them.
BEST_WITH_NEIGHBOURS = 100
# Uninformative messages get 1/10 of the places, in addition.
UNINFORMATIVE_SHARE = 10
# Semantic candidates taken from each period that the question names.
BEST_IN_PERIOD = 100
FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC) - datetime.resolution


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length, one row per drawer.

    Attributes:
        voices: Who said it: an index of `voice_roles` and `voice_speakers`, which have a row for
            each of the palace's speakers.
        said_at: Seconds since the epoch.
        terms: Length in terms; `before_terms` and `after_terms` for the adjacent messages.
        traits: Bit mask of traits; `before_traits` and `after_traits` for the adjacent messages.
        before: Key of the previous message in the conversation, 0 at its start; `after` likewise.
        quoted: Share of the question's quotations and full names that the drawer contains.
    """

    drawers: Ids
    rooms: Ids
    voices: npt.NDArray[np.int32]
    voice_roles: npt.NDArray[np.str_]
    voice_speakers: npt.NDArray[np.str_]
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

    @property
    def roles(self) -> npt.NDArray[np.str_]:
        return self.voice_roles[self.voices]

    @property
    def speakers(self) -> npt.NDArray[np.str_]:
        return self.voice_speakers[self.voices]

    def with_neighbours(self) -> Ids:
        """Keys of the candidates and of their adjacent messages, ascending."""
        keys = union(self.drawers, self.before, self.after)
        return keys[keys > 0]


@dataclass(frozen=True, slots=True)
class Lookups:
    """What all signals need of the candidates and their adjacent messages, looked up once.

    Attributes:
        meaning: Where the messages before, the candidates and the messages after are among the
            compared drawers.
        counts: The terms' counts of each of the three, one row for each term.
        words: The candidates' BM25 scores.
    """

    meaning: tuple[Places, ...]
    counts: tuple[Scores, ...]
    words: Scores

    @classmethod
    def of(cls, candidates: Candidates, meaning: Meaning, words: Words) -> Lookups:
        around = np.concatenate([candidates.before, candidates.drawers, candidates.after])
        counts = words.term_counts.of(around)
        return cls(
            tuple(Places.of(meaning.drawers, around).parts(3)),
            tuple(counts.reshape(len(counts), 3, len(candidates)).swapaxes(0, 1)),
            words.at(candidates.drawers),
        )


@dataclass(frozen=True, slots=True)
class DrawerFilter:
    """Which drawers may be hits. It applies before the best are taken, so that it costs no hits.

    Attributes:
        only: Keys of the drawers to choose from, ascending; None: all.
        until: Ignore what was said later.
        without: Keys of drawers that must not be hits, ascending. They stay candidates, because
            adjacent messages are judged by them, and others take their places.
        repeats: Keys of those of them that are not in the prompt, but ask the same question.
        hidden: Keys of drawers that the caller may not find, ascending.
        judged: Keys of drawers that become candidates even if others are closer, ascending.
        nearest: Whether drawers that are too far may be hits too.
    """

    only: Ids | None = None
    until: datetime | None = None
    without: Ids = field(default_factory=NO_KEYS.copy)
    repeats: Ids = field(default_factory=NO_KEYS.copy)
    hidden: Ids = field(default_factory=NO_KEYS.copy)
    judged: Ids = field(default_factory=NO_KEYS.copy)
    nearest: bool = False

    @property
    def is_limited(self) -> bool:
        return self.only is not None or self.until is not None or len(self.hidden) > 0

    def limit(self, palace: Palace, index: PalaceIndex | None, drawers: Ids) -> Ids:
        """Those of the drawers, which ascend, that may be candidates."""
        if self.only is not None:
            drawers = drawers[isin_sorted(drawers, self.only)]
        if len(self.hidden):
            drawers = drawers[~isin_sorted(drawers, self.hidden)]
        if self.until is None:
            return drawers
        if index is None:
            return _said_until(palace, drawers, self.until)
        rows = index.rows_of(drawers)
        return index.keys[rows[index.said_at[rows] <= self.until.timestamp()]]


def allowed_drawers(palace: Palace, request: RecallRequest) -> DrawerFilter:
    """The filter that a request asks for."""
    only = None if request.only_ids is None else _ascending(request.only_ids)
    only = narrowed(palace, request.narrowing, only)
    judged = NO_KEYS if request.judge is None else _ascending([request.judge])
    in_prompt = _ascending(request.exclude_ids)
    repeats = _ascending(request.repeats)
    repeats = repeats[~isin_sorted(repeats, in_prompt)]
    hidden = _of_other_agents(palace, storable_id(request.agent))
    return DrawerFilter(
        only,
        request.as_of,
        union(in_prompt, repeats),
        repeats,
        hidden,
        judged=judged,
        nearest=request.nearest,
    )


def _of_other_agents(palace: Palace, agent: str) -> Ids:
    if not agent:
        return NO_KEYS
    hidden = Drawer.objects.within(palace).of_other_agents(agent).order_by()
    return _ascending(hidden.values_list("pk", flat=True))


def _ascending(keys: Collection[int]) -> Ids:
    return union(np.array(list(keys), dtype=np.int64)) if len(keys) else NO_KEYS


def find_candidates(
    palace: Palace,
    query: Query,
    meaning: Meaning,
    words: Words,
    *,
    best_each: int = BEST_EACH,
    allowed: DrawerFilter | None = None,
) -> Candidates:
    """Collect the best drawers by meaning and by keywords, and their adjacent messages.

    Args:
        best_each: Number of candidates from each of the two rankings.
        allowed: By default, what was said until the question's `as_of`.
    """
    allowed = allowed or DrawerFilter(until=query.as_of)
    uninformative = NO_KEYS if query.intent.asks_asked else meaning.uninformative
    if allowed.is_limited:
        meaning, words = _limited(palace, meaning, words, allowed)
    rankings = list(_rankings(meaning, words, uninformative, allowed.without))
    best = _best_of_all(rankings, best_each)
    for period in query.time.periods:
        within = _best_within(meaning, palace, period.start, period.end, allowed)
        best = union(best, within)
    if len(allowed.judged):
        best = union(best, allowed.judged)
    with_neighbours = min(best_each // 2, BEST_WITH_NEIGHBOURS)
    closest = _best_of_all(rankings, with_neighbours)
    index = meaning.index
    if index is None:
        reach = np.where(isin_sorted(best, closest), 2, 1)
        index = load_around(palace.pk, best, reach)
    rows = _rows_with_neighbours(palace, index, best, closest, allowed)
    return _load(palace, query, index, rows, allowed)


def _limited(
    palace: Palace, meaning: Meaning, words: Words, allowed: DrawerFilter
) -> tuple[Meaning, Words]:
    """Both rankings, of possible candidates alone.

    A large palace is searched again: few of the drawers compared so far may be among them.
    """
    if meaning.vector_query:
        until = min(allowed.until or LAST_MOMENT, LAST_MOMENT) + datetime.resolution
        meaning = meaning.with_all(
            closest_by_bits(
                meaning.vector_query,
                without_trash=True,
                period=(FIRST_MOMENT, until),
                only=allowed.only,
                without=allowed.hidden,
            )
        )
    index = meaning.index
    return (
        meaning.limited_to(allowed.limit(palace, index, meaning.drawers)),
        words.limited_to(allowed.limit(palace, index, words.drawers)),
    )


class _Ranking:
    """Scored drawers, of which the uninformative ones displace no others."""

    def __init__(self, drawers: Ids, scores: Scores, uninformative: Ids) -> None:
        """
        Args:
            drawers: Ascending.
        """
        self.all = drawers, scores
        is_uninformative = isin_few(drawers, uninformative)
        self.others = drawers[~is_uninformative], scores[~is_uninformative]
        self.uninformative = drawers[is_uninformative], scores[is_uninformative]

    def best(self, number: int) -> tuple[Ids, ...]:
        """The best informative drawers, and a few of the best uninformative ones."""
        if len(self.all[0]) <= number:
            return (self.all[0],)
        few = max(number // UNINFORMATIVE_SHARE, 1)
        return _best(*self.others, number), _best(*self.uninformative, few)


def _rankings(
    meaning: Meaning, words: Words, uninformative: Ids, without: Ids
) -> Iterator[_Ranking]:
    """
    Args:
        without: Keys of drawers that displace no others either, ascending.
    """
    for drawers, scores in (meaning.drawers, meaning.best), (words.drawers, words.scores):
        yield _Ranking(drawers, scores, uninformative)
        if len(without):
            others = ~isin_sorted(drawers, without)
            yield _Ranking(drawers[others], scores[others], uninformative)


def _best_of_all(rankings: Sequence[_Ranking], number: int) -> Ids:
    """The best of each ranking, ascending."""
    return union(*chain.from_iterable(ranking.best(number) for ranking in rankings))


def _best(drawers: Ids, scores: Scores, number: int) -> Ids:
    if len(drawers) <= number:
        return drawers
    return drawers[scores.argpartition(-number)[-number:]]


def _best_within(
    meaning: Meaning, palace: Palace, start: datetime, end: datetime, allowed: DrawerFilter
) -> Ids:
    if meaning.vector_query:  # The period may contain too many drawers to compare them all.
        within = closest_by_bits(
            meaning.vector_query,
            without_trash=True,
            period=(start, end),
            only=allowed.only,
            without=allowed.hidden,
        )
        meaning = meaning.with_all(within)
    elif meaning.index:
        within = meaning.index.said_within(start.timestamp(), end.timestamp())
    else:
        within = _said_within(palace, start, end)
    within = allowed.limit(palace, meaning.index, within)
    return _best(within, meaning.at(within, meaning.best), BEST_IN_PERIOD)


def _said_within(palace: Palace, start: datetime, end: datetime) -> Ids:
    [(keys,)] = fetch_rows(
        "SELECT substring(array_send(array_agg(id)) FROM 21) FROM palace_drawer"
        " WHERE palace_id = %s AND said_at >= %s AND said_at < %s AND trashed_at IS NULL",
        [palace.pk, start, end],
    )
    return np.sort(decode_array(keys, "i8"))


def _said_until(palace: Palace, drawers: Ids, until: datetime) -> Ids:
    [(keys,)] = fetch_rows(
        "SELECT substring(array_send(array_agg(id)) FROM 21) FROM palace_drawer"
        " WHERE palace_id = %s AND said_at <= %s AND id = ANY(%s::bigint[])",
        [palace.pk, until, array_literal(drawers)],
    )
    return np.sort(decode_array(keys, "i8"))


def _rows_with_neighbours(
    palace: Palace, index: PalaceIndex, drawers: Ids, closest: Ids, allowed: DrawerFilter
) -> Rows:
    """Index rows of the drawers and of the messages adjacent to the closest ones, ascending."""
    rows = index.rows_of(drawers)
    near = rows[isin_sorted(index.keys[rows], closest)]
    rows = union(rows, index.before[near], index.after[near])
    rows = rows[rows >= 0]
    if not allowed.is_limited:
        return rows
    return index.rows_of(allowed.limit(palace, index, index.keys[rows]))


def _load(
    palace: Palace, query: Query, index: PalaceIndex, rows: Rows, allowed: DrawerFilter
) -> Candidates:
    before, after = index.before[rows], index.after[rows]
    if allowed.until:  # What was said later must not affect a score either.
        latest = allowed.until.timestamp()
        before, after = (
            np.where(index.said_at[adjacent] <= latest, adjacent, -1)
            for adjacent in (before, after)
        )
    phrases = [phrase.lower() for phrase in query.intent.phrases]
    return Candidates(
        drawers=index.keys[rows],
        rooms=index.column("room", rows),
        voices=index.column("voice", rows),
        voice_roles=index.voice_roles,
        voice_speakers=index.voice_speakers,
        said_at=index.column("said_at", rows),
        preference=index.column("preference", rows),
        terms=index.column("terms", rows),
        traits=index.column("traits", rows),
        before=index.column("key", before),
        before_terms=index.column("terms", before),
        before_traits=index.column("traits", before),
        after=index.column("key", after),
        after_terms=index.column("terms", after),
        after_traits=index.column("traits", after),
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
