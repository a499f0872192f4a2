"""Signals: every candidate's features, standardised so that weights mean the same everywhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from language.english.dates.time_intent import time_scores
from language.english.intent import Intent
from language.english.message_traits import TELLS_NOTHING, Trait
from palace.recall.candidates import Candidates
from palace.recall.keyword import Words
from palace.recall.query import Query
from palace.recall.semantic import Meaning, Scores

Tells = npt.NDArray[np.bool_]
# The feature's name.
SILENT = "statement.silent"
# A question within a talk stands for what was said about it, unless it is the one asked here: from
# this share of the question's words on.
SAME_QUESTION = 0.6
# What kind of thing a message says, whatever it is about: what asks, greets or thanks is near a
# question and answers nothing. The traits left out here demote questions, in `tells`.
LEARNT = tuple(
    trait for trait in Trait if trait not in Trait.ONLY_ASKS | Trait.ONLY_QUOTES | Trait.TAKES_UP
)


def features(
    query: Query, candidates: Candidates, meaning: Meaning, words: Words
) -> dict[str, Scores]:
    """By name, one value a candidate; before the dot stands the signal it is shown under.

    Meaning and words are in standard deviations above the palace's mean for this question; what
    surrounds a message is measured in the same units. The others run from 0 to 1, but lengths,
    which are logarithms.
    """
    telling = tells(query.intent, candidates, words)
    of_meaning = _of_meaning(candidates, meaning, telling)
    of_words = _of_words(candidates, words, telling)
    return {
        **of_meaning,
        **of_words,
        "agreement.exchange": agreement(of_meaning["meaning.best"], of_words["exchange.words"]),
        "words.quoted": candidates.quoted,
        "speaker.user": users_own(query.intent, candidates),
        "speaker.named": named_speaker(query.intent, candidates),
        "time.said": time_scores(candidates.said_at, query.time, query.now),
        "preference.stated": preference_scores(query.intent, candidates),
        "length.terms": np.log1p(candidates.terms),
        "length.passages": np.log1p(meaning.at(candidates.drawers, meaning.passages)),
        **{f"statement.{trait.name}".lower(): has_trait(candidates, trait) for trait in LEARNT},
        SILENT: (~telling).astype(np.float32),
    }


def _of_meaning(candidates: Candidates, meaning: Meaning, telling: Tells) -> dict[str, Scores]:
    best = meaning.standardised(meaning.at(candidates.drawers, meaning.best))
    before = meaning.standardised(meaning.at(candidates.before, meaning.best))
    return {
        "meaning.best": best,
        "meaning.first": meaning.standardised(meaning.at(candidates.drawers, meaning.first)),
        "exchange.before": before,
        "exchange.after": meaning.standardised(meaning.at(candidates.after, meaning.best)),
        "exchange.answer": answers(candidates, before),
        "room.meaning": room_best(candidates, best, telling),
    }


def _of_words(candidates: Candidates, words: Words, telling: Tells) -> dict[str, Scores]:
    message = words.standardised(words.at(candidates.drawers))
    exchange, coverage = exchange_words(candidates, words)
    return {
        "words.message": message,
        "exchange.words": words.standardised(exchange),
        "exchange.coverage": coverage,
        "room.words": room_best(candidates, message, telling),
    }


def agreement(first: Scores, second: Scores) -> Scores:
    """Of two standardised scores the product, where both are above the palace's mean; else 0."""
    return np.asarray(np.maximum(first, 0) * np.maximum(second, 0), dtype=np.float32)


def preference_scores(intent: Intent, candidates: Candidates) -> Scores:
    """How much each drawer states a wish or taste, when the question asks for advice; else 0."""
    if not intent.asks_advice:
        return np.zeros(len(candidates), dtype=np.float32)
    return candidates.preference


def users_own(intent: Intent, candidates: Candidates) -> Scores:
    """1 for the person's own words, 0 for others'; the reverse when the question is about those."""
    about_others = intent.asks_assistant and not intent.asks_user
    return np.asarray((candidates.roles == "user") != about_others, dtype=np.float32)


def named_speaker(intent: Intent, candidates: Candidates) -> Scores:
    """1 where the speaker is somebody the question names."""
    names = {name.casefold() for name in intent.names}
    if not names:
        return np.zeros(len(candidates), dtype=np.float32)
    matches = [
        speaker.casefold() in names or speaker.casefold().split(" ")[0] in names
        for speaker in candidates.speakers
    ]
    return np.array(matches, dtype=np.float32)


def has_trait(candidates: Candidates, trait: Trait) -> Scores:
    """1 for each that has it, else 0."""
    return ((candidates.traits & trait) > 0).astype(np.float32)


def exchange_words(candidates: Candidates, words: Words) -> tuple[Scores, Scores]:
    """Of each drawer, read together with the messages before and after it, BM25 and coverage.

    Coverage is the share of the question, 0 to 1, that is in any of the three.
    """
    lengths = candidates.terms + candidates.before_terms + candidates.after_terms
    exchange = [candidates.before, candidates.drawers, candidates.after]
    return words.of_groups(exchange, lengths)


def answers(candidates: Candidates, before: Scores) -> Scores:
    """Of each that comes right after a question, how well that one fits; else 0.

    Args:
        before: How well the message before each fits.
    """
    after_question = (candidates.before_traits & Trait.ENDS_ASKING) > 0
    return np.where(after_question, before, np.float32(0))


def room_best(candidates: Candidates, scores: Scores, telling: Tells) -> Scores:
    """For each candidate the best score that any candidate of its room has which tells something.

    A room without one is as good as the palace is on average.
    """
    rooms, places = np.unique(candidates.rooms, return_inverse=True)
    best = np.full(len(rooms), -np.inf, dtype=np.float32)
    np.maximum.at(best, places[telling], scores[telling])
    best[np.isneginf(best)] = 0
    return np.asarray(best[places], dtype=np.float32)


def tells(intent: Intent, candidates: Candidates, words: Words) -> Tells:
    """Of each candidate; all do where the question is after what was asked."""
    if intent.asks_asked:
        return np.ones(len(candidates), dtype=np.bool_)
    silent = (candidates.traits & TELLS_NOTHING) > 0
    within_talk = np.flatnonzero((candidates.traits & Trait.TAKES_UP) > 0)
    if len(within_talk):
        drawers, lengths = candidates.drawers[within_talk], candidates.terms[within_talk]
        _, coverage = words.of_groups([drawers], lengths)
        silent[within_talk] = coverage >= SAME_QUESTION
    return np.asarray(~silent)


def fall(scores: Scores, telling: Tells) -> float:
    """How much lower what tells nothing must score to come after all that tells something."""
    if telling.all() or not telling.any():
        return 0.0
    return max(float(scores[~telling].max() - scores[telling].min()) + 1.0, 0.0)
