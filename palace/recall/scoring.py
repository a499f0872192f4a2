"""Scoring: one value per candidate and signal, weighed by a recipe into one score, and ranked.

Values are standardised, so that weights are comparable. Scores are fused rather than ranks:
reciprocal rank fusion discards the margins between candidates, and scored lower on every set of
questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from language.english.dates.time_intent import time_scores
from language.english.message_traits import TELLS_NOTHING, Trait
from language.english.questions import Intent
from palace.recall.candidates import Candidates, DrawerFilter
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.raw_sql import isin_sorted
from palace.recall.recipes import UNINFORMATIVE, Recipe
from palace.recall.relevance import Relevance, relevant
from palace.recall.semantic import Meaning, Places, Scores, standardised

Mask = npt.NDArray[np.bool_]
# A question within a conversation is informative, unless it repeats the query: from this share of
# the query's words.
SAME_QUESTION = 0.6
# Traits with learned weights: a message that asks, greets or thanks is close to a question and
# answers nothing. The traits left out here are used by `informative_mask`.
LEARNT = tuple(
    trait for trait in Trait if trait not in Trait.ONLY_ASKS | Trait.ONLY_QUOTES | Trait.TAKES_UP
)
# Their features' names, and a column of their bits.
_STATEMENTS = tuple(f"statement.{trait.name}".lower() for trait in LEARNT)
_MASKS = np.array([[trait.value] for trait in LEARNT], dtype=np.int16)
_ASKING = np.int16((Trait.ENDS_ASKING | Trait.MOSTLY_ASKS).value)
_ENDS_ASKING, _TAKES_UP = np.int16(Trait.ENDS_ASKING.value), np.int16(Trait.TAKES_UP.value)
_TELLS_NOTHING = np.int16(TELLS_NOTHING.value)


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates with scores, and the rejected ones by reason.

    Attributes:
        signal_names: The columns of `contributions`, which has a row for each candidate.
        informative: Whether each candidate is informative.
        order: Indices of the possible hits, best first; the other lists likewise.
        too_far: Indices of the irrelevant candidates.
        excluded: Indices of the candidates already in the prompt.
        repeats: Indices of the candidates that ask the same question.
        relevance: The relevance decision with its figures.
    """

    candidates: Candidates
    signal_names: list[str]
    contributions: npt.NDArray[np.float64]
    scores: Scores
    informative: Mask
    order: list[int]
    too_far: list[int]
    excluded: list[int]
    repeats: list[int]
    relevance: Relevance

    def signals(self, places: Sequence[int]) -> list[dict[str, float]]:
        """Contributions of candidates by signal."""
        names, rows = self.signal_table(places)
        return [dict(zip(names, row, strict=True)) for row in rows.tolist()]

    def signal_table(self, places: Sequence[int]) -> tuple[list[str], npt.NDArray[np.float64]]:
        """The signals' names, and of each of these candidates a row with their contributions."""
        return self.signal_names, self.contributions[np.asarray(places, dtype=np.intp)]


def by_signal(
    shares: Mapping[str, Scores], number: int
) -> tuple[list[str], npt.NDArray[np.float64]]:
    """The signals' names, and of each of `number` candidates a row with their contributions.

    `room.words` and `room.meaning` add to `room`.
    """
    found: dict[str, npt.NDArray[np.float64]] = {}
    for name, values in shares.items():
        signal = name.partition(".")[0]
        own = found.get(signal)
        found[signal] = (0.0 if own is None else own) + values.astype(float)
    table = np.column_stack(list(found.values())) if found else np.empty((number, 0))
    return list(found), table


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
    values = features(query, candidates, meaning, words)
    informative = values[UNINFORMATIVE] == 0
    weights = recipe.weights_for(query.kinds)
    weight = weights.pop(UNINFORMATIVE, 0.0)
    shares = fuse(values, weights)
    scores = total(shares, len(candidates))
    if weight and not informative.all():
        shares[UNINFORMATIVE] = values[UNINFORMATIVE] * np.float32(
            weight * demotion(scores, informative)
        )
        scores = scores + shares[UNINFORMATIVE]
    known = isin_sorted(candidates.drawers, allowed.without)
    relevance = relevant(
        query,
        candidates,
        values,
        meaning,
        words,
        known,
        ~informative,
        floor_shift=recipe.floor_shift if recipe.floor else None,
    )
    taken = relevance.taken | allowed.nearest
    order = ranking(scores, candidates.drawers)
    repeats = isin_sorted(candidates.drawers, allowed.repeats)
    order, excluded = order[~known[order]], order[known[order]]
    return Scored(
        candidates,
        *by_signal(shares, len(candidates)),
        scores,
        informative=informative,
        order=order[taken[order]].tolist(),
        too_far=order[~taken[order]].tolist(),
        excluded=excluded[~repeats[excluded]].tolist(),
        repeats=excluded[repeats[excluded]].tolist(),
        relevance=relevance,
    )


def features(
    query: Query, candidates: Candidates, meaning: Meaning, words: Words
) -> dict[str, Scores]:
    """By name, one value per candidate; the part before the dot is the signal shown to users.

    Meaning and words, also of adjacent messages and rooms, are in standard deviations above the
    palace's mean for this question. Lengths are logarithms. All others are between 0 and 1.
    """
    informative = informative_mask(query.intent, candidates, words)
    own = Places.of(meaning.drawers, candidates.drawers)
    of_meaning = _of_meaning(candidates, meaning, own, informative)
    of_words = _of_words(candidates, words, informative)
    named = named_speaker(query.intent, candidates)
    return {
        **of_meaning,
        **of_words,
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
        "length.passages": np.log1p(own.values(meaning.passages, missing=meaning.mean)),
        **_of_statements(query.intent, candidates),
        UNINFORMATIVE: (~informative).astype(np.float32),
    }


def _of_meaning(
    candidates: Candidates, meaning: Meaning, own: Places, informative: Mask
) -> dict[str, Scores]:
    """
    Args:
        own: Where the candidates are among the compared drawers.
    """
    first = own.values(meaning.first, missing=meaning.mean)
    best = standardised(own.values(meaning.best, missing=meaning.mean), meaning)
    before = standardised(meaning.at(candidates.before, meaning.best), meaning)
    return {
        "meaning.best": best,
        "meaning.first": standardised(first, meaning),
        "exchange.before": before,
        "exchange.after": standardised(meaning.at(candidates.after, meaning.best), meaning),
        "exchange.answer": answers(candidates, before),
        "room.meaning": room_best(candidates, best, informative),
    }


def _of_words(candidates: Candidates, words: Words, informative: Mask) -> dict[str, Scores]:
    message = standardised(words.at(candidates.drawers), words)
    exchange, coverage = exchange_words(candidates, words)
    return {
        "words.message": message,
        "exchange.words": standardised(exchange, words),
        "exchange.coverage": coverage,
        "room.words": room_best(candidates, message, informative),
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
    return np.asarray((candidates.roles == "user") != about_others, dtype=np.float32)


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


def exchange_words(candidates: Candidates, words: Words) -> tuple[Scores, Scores]:
    """BM25 and coverage of each drawer read together with its adjacent messages.

    Coverage is the share of the question, 0 to 1, that any of the three contains.
    """
    lengths = candidates.terms + candidates.before_terms + candidates.after_terms
    exchange = [candidates.before, candidates.drawers, candidates.after]
    return words.score_groups(exchange, lengths)


def answers(candidates: Candidates, before: Scores) -> Scores:
    """The score of the message before, if that message ends with a question; else 0.

    Args:
        before: The score of the message before each candidate.
    """
    after_question = (candidates.before_traits & _ENDS_ASKING) > 0
    return np.where(after_question, before, np.float32(0))


def room_best(candidates: Candidates, scores: Scores, informative: Mask) -> Scores:
    """The best score of an informative candidate in the candidate's room; 0, the mean, if none."""
    rooms, places = np.unique(candidates.rooms, return_inverse=True)
    best = np.full(len(rooms), -np.inf, dtype=np.float32)
    np.maximum.at(best, places[informative], scores[informative])
    best[np.isneginf(best)] = 0
    return np.asarray(best[places], dtype=np.float32)


def informative_mask(intent: Intent, candidates: Candidates, words: Words) -> Mask:
    """Which candidates are informative; all, if the query asks for earlier questions."""
    if intent.asks_asked:
        return np.ones(len(candidates), dtype=np.bool_)
    uninformative = (candidates.traits & _TELLS_NOTHING) > 0
    within_talk = np.flatnonzero((candidates.traits & _TAKES_UP) > 0)
    if len(within_talk):
        drawers, lengths = candidates.drawers[within_talk], candidates.terms[within_talk]
        _, coverage = words.score_groups([drawers], lengths)
        uninformative[within_talk] = coverage >= SAME_QUESTION
    return np.asarray(~uninformative)


def demotion(scores: Scores, informative: Mask) -> float:
    """How much to subtract to rank uninformative candidates below all informative ones."""
    if informative.all() or not informative.any():
        return 0.0
    return max(float(scores[~informative].max() - scores[informative].min()) + 1.0, 0.0)


def fuse(features: Mapping[str, Scores], weights: Mapping[str, float]) -> dict[str, Scores]:
    """Weighted share of each feature in the score; features without a weight are left out.

    Args:
        features: By name, one standardised value per candidate.
        weights: By feature name.
    """
    return {
        name: np.asarray(features[name] * weight, dtype=np.float32)
        for name, weight in weights.items()
        if weight
    }


def total(shares: Mapping[str, Scores], number: int) -> Scores:
    """The score of each of `number` candidates: the sum of its shares."""
    return sum(shares.values(), np.zeros(number, dtype=np.float32))


def ranking(scores: Scores, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Indices of the candidates, best first; ties by ascending key."""
    return np.lexsort((keys, -scores))
