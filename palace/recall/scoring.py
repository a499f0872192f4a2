"""Scoring: one value per candidate and signal, weighed by a recipe into one score, and ranked.

Values are standardised, so that weights are comparable. Scores are fused rather than ranks:
reciprocal rank fusion discards the margins between candidates, and scored lower on every set of
questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from language.english.dates import time_scores
from language.english.message_traits import TELLS_NOTHING, Trait
from language.english.questions import Intent
from palace.recall.candidates import Candidates, DrawerFilter, Lookups
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.raw_sql import Keys, isin_sorted, starts_new
from palace.recall.recipes import UNINFORMATIVE, Recipe
from palace.recall.relevance import Relevance, relevant
from palace.recall.semantic import Meaning, Scores, standardised

Mask = npt.NDArray[np.bool_]
# A question within a conversation is informative, unless it repeats the query: from this share of
# the query's words.
SAME_QUESTION = 0.6
# Where earlier questions are wanted, one with all of the query's words is lifted so far, in
# weighted standard deviations; the signal is that of the statement's kind.
ASKED, ASKED_LIFT = "statement.asked", 8.0
# Traits with learned weights: a message that asks, greets or thanks is close to a question and
# answers nothing. The traits left out here are used by `informative_mask`.
LEARNT = tuple(
    trait for trait in Trait if trait not in Trait.ONLY_ASKS | Trait.ONLY_QUOTES | Trait.TAKES_UP
)
# Their features' names, and a column of their bits.
_STATEMENTS = tuple(f"statement.{trait.name}".lower() for trait in LEARNT)
_MASKS = np.array([[trait.value] for trait in LEARNT], dtype=np.int16)
_ASKING = np.int16((Trait.ENDS_ASKING | Trait.MOSTLY_ASKS).value)
_MOSTLY_ASKS = np.int16(Trait.MOSTLY_ASKS.value)
_ENDS_ASKING, _TAKES_UP = np.int16(Trait.ENDS_ASKING.value), np.int16(Trait.TAKES_UP.value)
_TELLS_NOTHING = np.int16(TELLS_NOTHING.value)
_ONLY_ASKS = np.int16(Trait.ONLY_ASKS.value)
_ONLY_QUOTES = np.int16(Trait.ONLY_QUOTES.value)


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with scores, and the rejected ones by reason.

    Attributes:
        shares: Of each feature in the score.
        informative: Whether each candidate is informative.
        order: Indices of the possible hits, best first; the other lists likewise.
        too_far: Indices of the irrelevant candidates.
        excluded: Indices of the candidates already in the prompt.
        repeats: Indices of the candidates that ask the same question.
        relevance: The relevance decision with its figures.
    """

    candidates: Candidates
    shares: Shares
    scores: Scores
    informative: Mask
    order: Keys
    too_far: Keys
    excluded: Keys
    repeats: Keys
    relevance: Relevance

    def signals(self, places: Sequence[int] | Keys) -> list[dict[str, float]]:
        """Contributions of candidates by signal."""
        names, rows = self.signal_table(places)
        return [dict(zip(names, row, strict=True)) for row in rows.tolist()]

    def signal_table(
        self, places: Sequence[int] | Keys
    ) -> tuple[list[str], npt.NDArray[np.float64]]:
        """The signals' names, and of each of these candidates a row with their contributions.

        `room.words` and `room.meaning` add to `room`.
        """
        signals, adding = _signals_of(self.shares.names)
        own = self.shares.table[:, np.asarray(places, dtype=np.intp)]
        return list(signals), (adding @ own.astype(float)).T


@dataclass(frozen=True, slots=True)
class Shares:
    """Weighted share of each feature in the score.

    Attributes:
        table: A row for each of the names, a column for each candidate.
    """

    names: tuple[str, ...]
    table: Scores

    def total(self) -> Scores:
        """The score of each candidate: the sum of its shares."""
        return np.asarray(np.add.reduce(self.table), dtype=np.float32)

    def joined(self, name: str, share: Scores) -> Shares:
        return Shares((*self.names, name), np.vstack([self.table, share]))


@cache
def _signals_of(features: tuple[str, ...]) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    """The signals of these features; a row for each with 1 for its own features, 0 for others."""
    owners = [name.partition(".")[0] for name in features]
    signals = tuple(dict.fromkeys(owners))
    adding = [[float(owner == signal) for owner in owners] for signal in signals]
    return signals, np.array(adding).reshape(len(signals), len(features))


def score(
    query: Query,
    recipe: Recipe,
    candidates: Candidates,
    meaning: Meaning,
    words: Words,
    allowed: DrawerFilter,
) -> Scored:
    """Score and rank the candidates.

    Args:
        allowed: Which drawers must not be hits.
    """
    lookups = Lookups.of(candidates, meaning, words)
    values = features(query, candidates, meaning, words, lookups)
    informative = values[UNINFORMATIVE] == 0
    weights = recipe.weights_for(query.kinds)
    weight = weights.pop(UNINFORMATIVE, 0.0)
    shares = fuse(values, weights, len(candidates))
    scores = shares.total()
    if weight and not informative.all():
        demoted = values[UNINFORMATIVE] * np.float32(weight * demotion(scores, informative))
        shares, scores = shares.joined(UNINFORMATIVE, demoted), scores + demoted
    if query.intent.wants_questions:
        lifted = asked_before(candidates, words, lookups)
        shares, scores = shares.joined(ASKED, lifted), scores + lifted
    known = isin_sorted(candidates.drawers, allowed.without)
    relevance = relevant(
        query,
        candidates,
        values,
        meaning,
        words,
        lookups,
        known,
        ~informative,
        floor_shift=recipe.floor_shift if recipe.floor else None,
    )
    taken = relevance.taken | allowed.nearest
    order = ranking(scores)
    repeats = isin_sorted(candidates.drawers, allowed.repeats)
    order, excluded = order[~known[order]], order[known[order]]
    return Scored(
        candidates,
        shares,
        scores,
        informative=informative,
        order=order[taken[order]],
        too_far=order[~taken[order]],
        excluded=excluded[~repeats[excluded]],
        repeats=excluded[repeats[excluded]],
        relevance=relevance,
    )


def features(
    query: Query,
    candidates: Candidates,
    meaning: Meaning,
    words: Words,
    lookups: Lookups | None = None,
) -> dict[str, Scores]:
    """By name, one value per candidate; the part before the dot is the signal shown to users.

    Meaning and words, also of adjacent messages and rooms, are in standard deviations above the
    palace's mean for this question. Lengths are logarithms. All others are between 0 and 1.
    """
    lookups = lookups or Lookups.of(candidates, meaning, words)
    informative = informative_mask(query.intent, candidates, words)
    of_meaning = _of_meaning(candidates, meaning, lookups)
    of_words = _of_words(candidates, words, lookups)
    rooms = room_best(
        candidates, [of_meaning["meaning.best"], of_words["words.message"]], informative
    )
    named = named_speaker(query.intent, candidates)
    return {
        **of_meaning,
        "room.meaning": rooms[0],
        **of_words,
        "room.words": rooms[1],
        "agreement.exchange": agreement(of_meaning["meaning.best"], of_words["exchange.words"]),
        "words.quoted": candidates.quoted,
        # A question that names a speaker is about that one, be it the user or not.
        "speaker.user": np.zeros_like(named)
        if named.any()
        else users_own(query.intent, candidates),
        "speaker.named": named,
        "time.said": time_scores(candidates.said_at, query.time, query.now),
        "preference.stated": preference_scores(query.intent, candidates),
        "length.terms": np.log1p(candidates.terms),
        "length.passages": np.log1p(
            lookups.meaning[1].values(meaning.passages, missing=meaning.mean)
        ),
        **_of_statements(query.intent, candidates),
        UNINFORMATIVE: (~informative).astype(np.float32),
    }


def _of_meaning(candidates: Candidates, meaning: Meaning, lookups: Lookups) -> dict[str, Scores]:
    before, own, after = lookups.meaning
    first = own.values(meaning.first, missing=meaning.mean)
    before_it = standardised(before.values(meaning.best, missing=meaning.mean), meaning)
    after_it = standardised(after.values(meaning.best, missing=meaning.mean), meaning)
    return {
        "meaning.best": standardised(own.values(meaning.best, missing=meaning.mean), meaning),
        "meaning.first": standardised(first, meaning),
        "exchange.before": before_it,
        "exchange.after": after_it,
        "exchange.answer": answers(candidates, before_it),
    }


def _of_words(candidates: Candidates, words: Words, lookups: Lookups) -> dict[str, Scores]:
    exchange, coverage = exchange_words(candidates, words, lookups.counts)
    return {
        "words.message": standardised(lookups.words, words),
        "exchange.words": standardised(exchange, words),
        "exchange.coverage": coverage,
    }


def _of_statements(intent: Intent, candidates: Candidates) -> dict[str, Scores]:
    """The traits; for a query about earlier questions, asking is none that counts."""
    masks = _MASKS & ~_ASKING if intent.asks_asked else _MASKS
    having = ((candidates.traits & masks) > 0).astype(np.float32)
    return dict(zip(_STATEMENTS, having, strict=True))


def agreement(first: Scores, second: Scores) -> Scores:
    """The product of two standardised scores if both are above the mean; else 0."""
    return np.asarray(np.maximum(first, 0) * np.maximum(second, 0), dtype=np.float32)


def preference_scores(intent: Intent, candidates: Candidates) -> Scores:
    """The strength of each drawer's stated preference if the question asks for advice; else 0."""
    if not intent.asks_advice:
        return np.zeros(len(candidates), dtype=np.float32)
    return candidates.preference


def users_own(intent: Intent, candidates: Candidates) -> Scores:
    """1 for the user's messages, 0 for others; reversed if the question is about the others'."""
    about_others = intent.asks_assistant and not intent.asks_user
    of_user = (candidates.voice_roles == "user") != about_others
    return np.asarray(of_user[candidates.voices], dtype=np.float32)


def named_speaker(intent: Intent, candidates: Candidates) -> Scores:
    """1 if the question names the speaker, else 0."""
    names = {name.casefold() for name in intent.names}
    if not names:
        return np.zeros(len(candidates), dtype=np.float32)
    speakers = candidates.speakers.tolist()
    folded = {speaker: speaker.casefold() for speaker in set(speakers)}
    is_named = {
        speaker: name in names or name.split(" ")[0] in names for speaker, name in folded.items()
    }
    return np.array([is_named[speaker] for speaker in speakers], dtype=np.float32)


def exchange_words(
    candidates: Candidates, words: Words, counts: Sequence[Scores]
) -> tuple[Scores, Scores]:
    """BM25 and coverage of each drawer read together with its adjacent messages.

    Coverage is the share of the question, 0 to 1, that any of the three contains.

    Args:
        counts: See `Lookups`.
    """
    lengths = candidates.terms + candidates.before_terms + candidates.after_terms
    return words.score_counts(counts, lengths)


def answers(candidates: Candidates, before: Scores) -> Scores:
    """The score of the message before, if that message ends with a question; else 0.

    Args:
        before: The score of the message before each candidate.
    """
    after_question = (candidates.before_traits & _ENDS_ASKING) > 0
    return np.where(after_question, before, np.float32(0))


def room_best(candidates: Candidates, columns: Sequence[Scores], informative: Mask) -> list[Scores]:
    """Of each column, the best value of an informative candidate in the candidate's room.

    0, the mean, where there is none.
    """
    order = candidates.rooms.argsort(kind="stable")
    begins = starts_new(candidates.rooms[order])
    starts = begins.nonzero()[0]
    places = np.empty(len(order), np.intp)
    places[order] = begins.cumsum() - 1
    found = []
    for scores in columns:
        counted = np.where(informative, scores, np.float32(-np.inf))[order]
        best = np.maximum.reduceat(counted, starts) if len(order) else counted
        best[np.isneginf(best)] = 0
        found.append(best[places])
    return found


def informative_mask(intent: Intent, candidates: Candidates, words: Words) -> Mask:
    """Which candidates are informative; questions too, if the query asks for earlier ones.

    A question within a talk is, unless it repeats the query. So is one that may state something
    beside, unless its author says no word more than the query does.
    """
    if intent.asks_asked:
        return np.asarray((candidates.traits & _ONLY_QUOTES) == 0)
    uninformative = (candidates.traits & _TELLS_NOTHING) > 0
    asks = (candidates.traits & _MOSTLY_ASKS) > 0
    within_talk = ((candidates.traits & _TAKES_UP) > 0) & (candidates.before > 0)
    unsure = within_talk | (asks & ~uninformative)
    places = unsure.nonzero()[0]
    if len(places):
        drawers, lengths = candidates.drawers[places], candidates.terms[places]
        counts = words.term_counts.of(drawers)
        _, coverage = words.score_counts([counts], lengths)
        says_no_more = (counts.sum(axis=0) >= lengths) & (candidates.roles[places] == "user")
        repeats = within_talk[places] & (coverage >= SAME_QUESTION)
        uninformative[places] = repeats | says_no_more
    return np.asarray(~uninformative)


def asked_before(candidates: Candidates, words: Words, lookups: Lookups) -> Scores:
    """The lift of what only asks, by the share of the query's words that it has."""
    _, coverage = words.score_counts([lookups.counts[1]], candidates.terms)
    asks = (candidates.traits & _ONLY_ASKS) > 0
    return np.asarray(ASKED_LIFT * coverage * asks, dtype=np.float32)


def demotion(scores: Scores, informative: Mask) -> float:
    """How much to subtract to rank uninformative candidates below all informative ones."""
    if informative.all() or not informative.any():
        return 0.0
    return max(float(scores[~informative].max() - scores[informative].min()) + 1.0, 0.0)


def fuse(features: Mapping[str, Scores], weights: Mapping[str, float], number: int) -> Shares:
    """The shares of `number` candidates' scores; features without a weight are left out.

    Args:
        features: By name, one standardised value per candidate.
        weights: By feature name.
    """
    names = tuple(name for name, weight in weights.items() if weight)
    by = np.array([weights[name] for name in names], dtype=np.float32)
    values = np.concatenate([features[name] for name in names] or [np.empty(0, np.float32)])
    table = values.astype(np.float32, copy=False).reshape(len(names), number)
    return Shares(names, table * by[:, None])


def ranking(scores: Scores) -> Keys:
    """Indices of the candidates, best first; ties by ascending index, and so by key."""
    return (-scores).argsort(kind="stable")
